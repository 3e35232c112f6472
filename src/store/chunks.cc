#include "store/chunks.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace atl::store {
namespace {

constexpr size_t kWindowBytes = 64;
// One place in 2^19 fits, so that chunks have about 640 KiB.
constexpr uint64_t kMask = ((uint64_t{1} << 19) - 1) << 45;

// A number for each byte that looks random (splitmix64); which ones does not matter, but another
// table would cut everything elsewhere.
constexpr std::array<uint64_t, 256> make_table() {
  std::array<uint64_t, 256> table{};
  uint64_t state = 0x61746f6c6c;
  for (uint64_t& number : table) {
    state += 0x9e3779b97f4a7c15;
    uint64_t mixed = state;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    number = mixed ^ (mixed >> 31);
  }
  return table;
}
constexpr std::array<uint64_t, 256> kTable = make_table();

}  // namespace

size_t find_chunk(std::string_view bytes) {
  size_t end = std::min(bytes.size(), kMaxChunkBytes);
  uint64_t hash = 0;
  for (size_t i = kMinChunkBytes - kWindowBytes; i < end; ++i) {
    // Each byte is shifted out after 64 others.
    hash = (hash << 1) + kTable[static_cast<unsigned char>(bytes[i])];
    if (i + 1 >= kMinChunkBytes && (hash & kMask) == 0) return i + 1;
  }
  return end == kMaxChunkBytes ? end : 0;
}

}  // namespace atl::store
