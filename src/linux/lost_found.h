// Subvolumes that nobody knows, kept in `lost+found` of their file system, each under the time and
// its name, for a week.
#pragma once

#include <string>

#include "base/result.h"

namespace atl::linux {

// What is not there is a success.
Result<void> set_aside_subvolume(int directory, const std::string& name);
// Removes those whose week is over.
Result<void> sweep_lost_found(int directory);

}  // namespace atl::linux
