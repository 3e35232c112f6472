// Bytes packed by zstd, in memory.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::store {

Result<std::string> compress(std::string_view bytes);
// Exactly `size` bytes come out of it, or it is kCorrupt.
Result<std::string> decompress(std::string_view packed, size_t size);

}  // namespace atl::store
