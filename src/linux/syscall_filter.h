// seccomp(2): a filter that the kernel asks about every later system call of the calling process
// and of all its descendants. It cannot be taken off; another one can only forbid more.
#pragma once

#include <linux/filter.h>

#include <span>

#include "base/result.h"

namespace atl::linux {

// Needs no_new_privs. Single-threaded callers only: a filter belongs to a thread.
Result<void> load_syscall_filter(std::span<const sock_filter> program);

}  // namespace atl::linux
