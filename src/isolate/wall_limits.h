// What a wall enforces by itself, and the bounds of what a caller may ask for.
#pragma once

#include <cstdint>

#include "warden/protocol.h"

namespace atl::isolate {

struct WallLimits {
  uint32_t cpu_millis;
  uint64_t memory_bytes;
  uint32_t pids;
  uint64_t disk_bytes;
};

using warden::kMaxCpuMillis;
using warden::kMaxDiskBytes;
using warden::kMaxMemoryBytes;
using warden::kMaxPids;
using warden::kMinCpuMillis;
using warden::kMinDiskBytes;
using warden::kMinMemoryBytes;
using warden::kMinPids;

}  // namespace atl::isolate
