// Lost and found: files that no row names, when an operator had atolld adopt them all the same. In
// `lost+found` beside the folder that they were in, each as "<time>.<folder>.<name>", for a week.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace atl::store {

inline constexpr int64_t kLostFoundTimeMs = 7ll * 24 * 3600 * 1000;

// What becomes of a file that no row names.
enum class Unlisted : unsigned char { kRemove, kSetAside };

// Moves <folder>/<name>, a file or a directory, there. What is not there is a success.
Result<void> set_aside(const std::string& folder, const std::string& name);

// Removes what came there a week ago. `directory`: the one with lost+found in it.
Result<void> sweep_lost_found(const std::string& directory, int64_t now_ms);

}  // namespace atl::store
