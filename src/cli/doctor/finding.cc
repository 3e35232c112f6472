#include "cli/doctor/finding.h"

namespace atl::cli {

std::string_view class_name(FindingClass value) {
  static constexpr std::string_view kNames[] = {"required", "extra", "advice"};
  return kNames[static_cast<size_t>(value)];
}

std::string_view state_name(FindingState value) {
  static constexpr std::string_view kNames[] = {"ok", "missing", "unknown"};
  return kNames[static_cast<size_t>(value)];
}

}  // namespace atl::cli
