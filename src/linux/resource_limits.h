// setrlimit(2) of the calling process, for what it executes later.
#pragma once

#include <sys/resource.h>

#include "base/result.h"

namespace atl::linux {

Result<void> set_limit(__rlimit_resource_t resource, rlim_t soft, rlim_t hard);

// Soft and hard alike; what is already lower stays, for raising it needs a capability.
Result<void> lower_limit(__rlimit_resource_t resource, rlim_t most);

// The soft limit is `asked`, the hard one not less than `spare` if it may be. EPERM: the hard limit
// is below what is asked for.
Result<void> limit_open_files(rlim_t asked, rlim_t spare);

// What is executed later may be given that many open files.
bool may_open_files(rlim_t count);
// Allows what is executed later that many open files. EPERM: there is no power to do so, and what
// the host gave stays.
Result<void> allow_open_files(rlim_t most);

}  // namespace atl::linux
