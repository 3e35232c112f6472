// The machine as QEMU is told to build it: one processor, memory, up to three disks, two serial
// ports, a source of randomness; no network, no display, no other device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/birth_record.h"

namespace atl::microvm {

// Where the keeper finds and leaves things in its jail.
inline constexpr const char* kImageFile = "/run/atoll/image";
inline constexpr const char* kToolboxFile = "/run/atoll/toolbox";
inline constexpr const char* kDiskFile = "/disk";
inline constexpr const char* kInitramfsFile = "/initramfs";
// Of a machine that was laid down, all but its memory; who finds it begins there.
inline constexpr const char* kStateFile = "/state";
inline constexpr const char* kHardwareStateFile = "/state.kvm";
// Where QEMU connects to: its control socket, and the agent's port.
inline constexpr const char* kSocketDirectory = "/machine";
inline constexpr const char* kMonitorSocket = "monitor";
inline constexpr const char* kPortSocket = "agent";

// How the guest knows its disks and its ports.
inline constexpr const char* kImageSerial = "image";
inline constexpr const char* kToolboxSerial = "toolbox";
inline constexpr const char* kDiskSerial = "disk";
inline constexpr const char* kPortName = "atoll.agent";
inline constexpr const char* kPassageName = "atoll.passage";

// The guest's kernel, its page tables and the first file system, beside what programs may use.
inline constexpr uint64_t kKernelMemoryBytes = 112ull << 20;
// QEMU itself: its code, its heap and the code that it translates the guest's into.
inline constexpr uint64_t kMonitorMemoryBytes = 160ull << 20;
// Of the layer, beside the writable disk.
inline constexpr uint64_t kMonitorDiskBytes = 64ull << 20;
inline constexpr uint32_t kMonitorPids = 64;
inline constexpr uint32_t kMonitorOpenFiles = 1024;
inline constexpr uint32_t kMonitorCpuMillis = 1000;  // at least, or a boot would take minutes

// Who runs the guest's instructions: QEMU, translated, or the host's processor. There is no other
// way for a machine than the one that it is told.
enum class Accelerator : unsigned char { kTcg, kKvm };
Accelerator accelerator_of(const agent::GuestLimits& limits);

// What the one left, the other cannot read.
const char* state_file(Accelerator accelerator);

struct Machine {
  std::string kernel;  // its file
  agent::GuestLimits limits;
  bool has_toolbox;
  uint64_t tsc_khz;  // of the host, which the guest's follows; kTcg only
  // kRestored: with the memory of another, which it does not change, and waits to be told where it
  // begins.
  enum class Begins : unsigned char { kBooted, kRestored } begins = Begins::kBooted;
};

uint64_t machine_memory_bytes(const agent::GuestLimits& limits);

// Descriptor 0 of QEMU is the file of the machine's memory, its control socket the other end of the
// passage.
std::vector<std::string> machine_command(const Machine& machine);

}  // namespace atl::microvm
