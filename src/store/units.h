// Sizes and durations as people write them in files: a whole number and a unit, nothing between.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace atl::store {

// "100B", "64KiB", "512MiB", "1GiB", "2TiB" in bytes.
std::optional<uint64_t> parse_size(std::string_view text);
// "500ms", "30s", "5m", "2h", "7d" in milliseconds.
std::optional<uint64_t> parse_duration(std::string_view text);

}  // namespace atl::store
