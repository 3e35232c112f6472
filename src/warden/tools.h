// The programs of ours that every isolate has at /run/atoll/bin: sudo. One small read-only tmpfs,
// made once; a launch clones the mount. What is in it can be neither replaced nor changed, by an
// upgrade on disk or by anyone, as long as this warden runs.
#pragma once

#include <string>

#include "base/result.h"
#include "warden/host.h"

namespace atl::warden {

// Mounts it at R/tools in the warden's own mount namespace; `sudo` is the path of the program.
Result<void> mount_tools(const Host& host, const std::string& sudo);

}  // namespace atl::warden
