// Base 64 (RFC 4648, with padding), for output that is not UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace atl::api {

std::string to_base64(std::string_view bytes);

}  // namespace atl::api
