// Durations as people write them: "500ms", "1s", "2m", "1h".
#pragma once

#include <chrono>
#include <string_view>

#include "base/result.h"

namespace atl::cli {

inline constexpr std::chrono::hours kMaxDuration{24 * 7};

Result<std::chrono::milliseconds> parse_duration(std::string_view text);

}  // namespace atl::cli
