// What the agent is born with. Taking it is the first thing either process of this binary does: it
// closes what the contract in protocol.h does not name, so that nothing of the host's can leak to a
// program.
#pragma once

#include <array>

#include "agent/birth_record.h"
#include "base/fd.h"
#include "base/result.h"

namespace atl::agent {

struct Birth {
  Fd listener;
  Fd cgroup;   // directory in which each exec gets its leaf
  Fd spawner;  // not valid where the agent starts programs itself
  Fd probe;    // not valid where nobody asks for a receipt
  Fd sudo;     // listener; not valid where programs cannot ask
  Fd rest;     // not valid where nobody wants to know when nothing runs
  Fd memory_events, pids_events;
  Fd memory_peak;  // not valid where the kernel keeps none (v2 before 5.19)
  Fd oom_notice;
  OnOom on_oom;
  std::array<unsigned char, kNonceBytes> nonce;
  GuestLimits guest;  // of a keeper
};

Result<Birth> take_birth();

// Hides the process from in-sandbox root (ptrace, /proc/<pid>/mem) and from leaking descriptors:
// keeps 0 to 2, opened to nothing where they were closed, and 3 to `last_fd` as close-on-exec;
// closes the rest.
Result<void> harden_process(int last_fd);

// The real null device, opened before any program of the sandbox could have put another file there.
Result<Fd> open_null_device();

}  // namespace atl::agent
