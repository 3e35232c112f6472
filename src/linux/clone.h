// clone3(2) as a fork: into namespaces, into a cgroup, always with a pidfd, so that the new process
// can be signalled and waited for without its number ever being mistaken for another's.
//
// Both processes return from the call. The child is a copy of a single thread: call it only from
// single-threaded processes, and leave the child by execve or _exit.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/fd.h"
#include "base/result.h"

namespace atl::linux {

struct CloneRequest {
  uint64_t flags = 0;  // CLONE_NEW*, CLONE_PARENT; CLONE_PIDFD is always added
  int cgroup = -1;     // directory of a v2 group to be born in, or -1 for the caller's
};

struct CloneOutcome {
  pid_t pid;  // 0 in the child
  Fd pidfd;   // not valid in the child
  bool in_child() const { return pid == 0; }
};

Result<CloneOutcome> clone_process(const CloneRequest& request);

}  // namespace atl::linux
