// Signals by name, as the API and people write them.
#pragma once

#include <optional>
#include <string_view>

namespace atl::api::v1 {

// "TERM" or "SIGTERM"; only signals that a program can be ended or controlled with.
std::optional<int> signal_number(std::string_view name);

}  // namespace atl::api::v1
