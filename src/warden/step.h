// The steps of building an isolate, which whoever asked for one is told.
#pragma once

#include <cstdint>
#include <string_view>

namespace atl::warden {

// In order; a failed launch names the one that failed.
enum class Step : uint16_t {
  kNone = 0,
  kRecord,
  kUidRange,
  kPool,
  kLayer,
  kImage,
  kCgroup,
  kListener,
  kClone,
  kUidMap,
  kIdmap,
  kSpawner,
  kNamespaces,
  kRoot,
  kDevices,
  kProc,
  kMasks,
  kVolumes,
  kPivot,
  kNetwork,
  kCapabilities,
  kAgent,
  kReceipt,
  kHelper,  // the helper process itself died
};
inline constexpr uint16_t kLastStep = static_cast<uint16_t>(Step::kHelper);

std::string_view step_name(Step step);

}  // namespace atl::warden
