// Query parameters, checked. A parameter that is there twice or malformed is refused, not ignored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/message.h"

namespace atl::api {

Error invalid_parameter(std::string_view name, std::string_view must);

// A whole number; nothing if it is not given.
Result<std::optional<uint64_t>> number_parameter(std::string_view name,
                                                 const http::Request& request);
// Any text; nothing if it is not given.
Result<std::optional<std::string>> text_parameter(std::string_view name,
                                                  const http::Request& request);
// "true" or "false"; false if it is not given.
Result<bool> flag_parameter(std::string_view name, const http::Request& request);

}  // namespace atl::api
