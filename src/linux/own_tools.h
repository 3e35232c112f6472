// The programs of ours that every sandbox has at /run/atoll/bin: sudo. One small read-only tmpfs,
// made once; each sandbox gets a clone of the mount. What is in it can be neither replaced nor
// changed, by an upgrade on disk or by anyone.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::linux {

// Mounts it at `target`; `sudo` are the bytes of the program.
Result<void> mount_tools(const std::string& target, std::string_view sudo);

}  // namespace atl::linux
