// What one sandbox may use. The bounds that a caller may ask for are those of the wall.
#pragma once

#include <cstdint>
#include <string_view>

#include "isolate/monitor.h"
#include "isolate/wall_limits.h"
#include "store/sandbox_rows.h"

namespace atl::sandbox {

inline constexpr uint64_t kMaxOutputLimitBytes = 1ull << 32;
inline constexpr uint64_t kDefaultOutputLimitBytes = 64ull << 20;
inline constexpr uint64_t kMaxTtlMs = 30ull * 24 * 3600 * 1000;
inline constexpr uint64_t kMinIdleTtlMs = 1000;  // how soon the sweep comes
inline constexpr uint32_t kMaxCpuTimeMs = 30u * 24 * 3600 * 1000;
inline constexpr uint32_t kMaxTimeoutMs = 24 * 3600 * 1000;
inline constexpr uint32_t kDefaultTimeoutMs = 60 * 1000;

// Protections that a caller may insist on, by name.
struct NamedExtra {
  std::string_view name;
  isolate::Extra extra;
};
inline constexpr NamedExtra kExtras[] = {
    {"landlock", isolate::Extra::kLandlock},
    {"time_namespace", isolate::Extra::kTimeNamespace},
    {"simple_quotas", isolate::Extra::kSimpleQuotas},
    {"hardware_virtualization", isolate::Extra::kHardwareVirtualization},
};

struct Limits {
  isolate::WallLimits wall;
  uint64_t output_bytes;               // per stream of each exec
  uint32_t cpu_time_ms = 0;            // of each exec that does not say; 0: not limited
  isolate::MonitorNeeds monitor = {};  // what runs it takes that much beside

  // What the host must promise.
  uint64_t memory_bytes() const { return wall.memory_bytes + monitor.memory_bytes; }
  uint64_t disk_bytes() const { return wall.disk_bytes + monitor.disk_bytes; }
};

Limits limits_of(const store::SandboxRow& row);

}  // namespace atl::sandbox
