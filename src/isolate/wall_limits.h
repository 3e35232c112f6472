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
  uint32_t open_files = warden::kDefaultOpenFiles;
  uint64_t disk_bytes_per_second = 0;  // 0: not limited
  warden::OnOom on_oom = warden::OnOom::kEndExec;
  uint32_t required_extras = 0;  // bits of warden::Extra
  uint64_t inherited_bytes = 0;  // of disk_bytes: what the layer begins with

  bool operator==(const WallLimits&) const = default;
};

using warden::Extra;
using warden::OnOom;

using warden::kMaxCpuMillis;
using warden::kMaxDiskBytes;
using warden::kMaxDiskBytesPerSecond;
using warden::kMaxMemoryBytes;
using warden::kMaxOpenFiles;
using warden::kMaxPids;
using warden::kMinCpuMillis;
using warden::kMinDiskBytes;
using warden::kMinDiskBytesPerSecond;
using warden::kMinMemoryBytes;
using warden::kMinOpenFiles;
using warden::kMinPids;

}  // namespace atl::isolate
