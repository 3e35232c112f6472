// Base 64 (RFC 4648, with padding), for bytes that are not UTF-8.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace atl::api {

std::string to_base64(std::string_view bytes);
// Nothing if it is not exactly what to_base64() gives for some bytes.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace atl::api
