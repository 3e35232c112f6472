// Base 64 (RFC 4648, with padding), as the server writes it.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::cli {

Result<std::string> decode_base64(std::string_view text);

}  // namespace atl::cli
