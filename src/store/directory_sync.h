// A new or renamed file survives power loss only when the directory that names it was synced too.
#pragma once

#include <string>

#include "base/result.h"

namespace atl::store {

Result<void> sync_directory_of(const std::string& path);

}  // namespace atl::store
