// A directory with all that is beneath it.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"

namespace atl::linux {

inline constexpr int kMaxTreeDepth = 16;

// Removes it; absence is a success. Follows no link. ELOOP: it is deeper than kMaxTreeDepth.
Result<void> remove_tree(int parent, const std::string& name);

// To that user and its group; what a link leads to is not touched.
Result<void> chown_at(int directory, const char* name, uid_t owner);

}  // namespace atl::linux
