// What one sandbox may use. The bounds that a caller may ask for are those of the wall.
#pragma once

#include <cstdint>

#include "isolate/wall_limits.h"

namespace atl::sandbox {

inline constexpr uint64_t kMaxOutputLimitBytes = 1ull << 32;
inline constexpr uint64_t kDefaultOutputLimitBytes = 64ull << 20;
inline constexpr uint64_t kMaxTtlMs = 30ull * 24 * 3600 * 1000;
inline constexpr uint32_t kMaxTimeoutMs = 24 * 3600 * 1000;
inline constexpr uint32_t kDefaultTimeoutMs = 60 * 1000;

struct Limits {
  isolate::WallLimits wall;
  uint64_t output_bytes;  // per stream of each exec
};

}  // namespace atl::sandbox
