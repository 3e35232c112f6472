// Signals by name, as the API and people write them.
#pragma once

#include <optional>
#include <string_view>

namespace atl::api::v1 {

// "TERM", "SIGTERM", "15", "RTMIN+1" or "RTMAX-1": from 1 to 64.
std::optional<int> signal_number(std::string_view name);

}  // namespace atl::api::v1
