// Where a stream of bytes is cut into chunks: at places that the bytes themselves choose, so that a
// byte that is put in or taken out changes the chunk around it and no other. A rolling hash over
// the last 64 bytes decides.
#pragma once

#include <cstddef>
#include <string_view>

namespace atl::store {

inline constexpr size_t kMinChunkBytes = 128 * 1024;
inline constexpr size_t kMaxChunkBytes = 2 * 1024 * 1024;

// How long the first chunk of `bytes` is; 0: more bytes must be known to tell. With kMaxChunkBytes
// of them it is always known.
size_t find_chunk(std::string_view bytes);

}  // namespace atl::store
