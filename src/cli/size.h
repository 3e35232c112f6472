// Sizes as people write them on a command line.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace atl::cli {

// "4096", "100B", "64KiB", "512MiB", "1GiB", "2TiB" in bytes.
Result<uint64_t> parse_size(std::string_view text);

}  // namespace atl::cli
