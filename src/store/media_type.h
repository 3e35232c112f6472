// What a file is, for those who show it: by the end of its name, else by its first bytes.
#pragma once

#include <string_view>

namespace atl::store {

std::string_view media_type(std::string_view name, std::string_view first_bytes);

}  // namespace atl::store
