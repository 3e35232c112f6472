// pidfd_open(2) and its family: a process held by descriptor, so that a signal can never reach
// another process that got the same number later. Where the kernel has none (gVisor's), it is the
// process's directory of /proc, which no other process ever gets either.
#pragma once

#include <sys/types.h>

#include "base/fd.h"
#include "base/result.h"

namespace atl::linux {

// Safe against reuse of the number only for a child of the caller that has not been waited for.
Result<Fd> open_pidfd(pid_t pid);

// Signalling a process that has ended is an error with ESRCH.
Result<void> send_signal(int pidfd, int signal_number);

// With a number that signalfd(2) gives as ssi_int.
Result<void> queue_signal(int pidfd, int signal_number, int value);

bool has_ended(int pidfd);

// Waits for a child to end, reaps it and gives its status as wait(2) encodes it.
Result<int> wait_for_exit(int pidfd);

}  // namespace atl::linux
