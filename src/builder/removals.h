// What a manifest's `remove` names is taken out of a tree: whatever matches one of its globs, with
// everything beneath it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace atl::builder {

// How many names were removed. Links are names like any other: nothing is removed through one.
Result<uint64_t> remove_matching(int root, const std::vector<std::string>& globs);

}  // namespace atl::builder
