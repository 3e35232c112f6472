// The difference of two texts, line by line, in the unified format that `diff -u` and `patch` know.
#pragma once

#include <string>
#include <string_view>

namespace atl::sandbox {

inline constexpr size_t kMaxDiffTextBytes = 256 * 1024;  // of each text

// Empty: they are the same. Where the texts have more than a few hundred lines that differ, what is
// between the first and the last of them is told as replaced: right, but longer than need be.
std::string unified_diff(std::string_view before, std::string_view after, std::string_view path);

}  // namespace atl::sandbox
