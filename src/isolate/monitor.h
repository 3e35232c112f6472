// What stands between the programs of a sandbox and the jail around it, if anything does: gVisor's
// sentry or a machine.
#pragma once

#include <cstdint>

#include "base/ids.h"

namespace atl::isolate {

// Who runs the instructions of a machine: a program, or the host's processor (KVM).
enum class Virtualization : unsigned char { kEmulated, kHardware };

// How gVisor's sentry takes hold of the system calls of programs: with the help of seccomp, which
// is faster, or of ptrace, which more kernels let it have.
enum class Platform : unsigned char { kSystrap, kPtrace };

struct Monitor {
  enum class Kind : unsigned char { kSentry, kMachine };

  Digest image;  // whose programs run it
  Kind kind = Kind::kMachine;
  Virtualization virtualization = Virtualization::kEmulated;  // of a machine
  Platform platform = Platform::kSystrap;                     // of a sentry

  bool operator==(const Monitor&) const = default;
};

// What it takes itself, beside what the programs may use.
struct MonitorNeeds {
  uint64_t memory_bytes;
  uint64_t disk_bytes;
};
MonitorNeeds needs_of(Monitor::Kind kind);

}  // namespace atl::isolate
