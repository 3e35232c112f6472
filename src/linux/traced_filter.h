// The seccomp filter that the kernel really runs for another process, read by ptrace(2). The caller
// needs CAP_SYS_ADMIN on the host and must not have a filter itself: the kernel hands filters out
// to nobody else.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"

namespace atl::linux {

// The instructions (sock_filter) as bytes. The process has exactly one filter, or it is an error.
// It is stopped for the moment and goes on afterwards.
Result<std::string> read_filter_of(pid_t pid);

}  // namespace atl::linux
