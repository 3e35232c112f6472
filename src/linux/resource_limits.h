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

}  // namespace atl::linux
