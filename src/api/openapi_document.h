// The bytes of api/openapi.json; src/api/CMakeLists.txt writes the source.
#pragma once

#include <string_view>

namespace atl::api {

extern const std::string_view kOpenapiDocument;
extern const std::string_view kOpenapiDigest;  // SHA-256, hexadecimal

}  // namespace atl::api
