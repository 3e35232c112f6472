#include "store/chunks.h"

#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "store/sha256.h"
#include "store/zstd.h"

namespace atl::store {
namespace {

std::string random_bytes(size_t count, unsigned seed) {
  std::mt19937_64 numbers(seed);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(numbers());
  return bytes;
}

std::vector<std::string_view> cut(std::string_view bytes) {
  std::vector<std::string_view> chunks;
  while (size_t chunk = find_chunk(bytes)) {
    chunks.push_back(bytes.substr(0, chunk));
    bytes.remove_prefix(chunk);
  }
  if (!bytes.empty()) chunks.push_back(bytes);
  return chunks;
}

TEST(ChunksTest, HaveTheirSizes) {
  std::string bytes = random_bytes(32 << 20, 1);
  auto chunks = cut(bytes);
  EXPECT_GT(chunks.size(), 32u);
  EXPECT_LT(chunks.size(), 80u);
  for (size_t i = 0; i + 1 < chunks.size(); ++i) {
    EXPECT_GE(chunks[i].size(), kMinChunkBytes);
    EXPECT_LE(chunks[i].size(), kMaxChunkBytes);
  }
  EXPECT_EQ(find_chunk(bytes.substr(0, kMinChunkBytes - 1)), 0u);
  EXPECT_EQ(find_chunk(std::string(kMaxChunkBytes + 5, '\0')), kMaxChunkBytes);
}

TEST(ChunksTest, AByteThatIsPutInChangesFewOfThem) {
  std::string bytes = random_bytes(32 << 20, 2);
  std::set<Digest> before;
  for (std::string_view chunk : cut(bytes)) before.insert(sha256(chunk));
  bytes.insert(10 << 20, "x");
  size_t changed = 0;
  for (std::string_view chunk : cut(bytes)) changed += before.contains(sha256(chunk)) ? 0 : 1;
  EXPECT_GE(changed, 1u);
  EXPECT_LE(changed, 2u);
}

TEST(ZstdTest, GivesBackWhatWasPacked) {
  for (const std::string& bytes :
       {std::string("a"), std::string(1 << 20, 'x'), random_bytes(100'000, 3)}) {
    std::string packed = compress(bytes).value();
    EXPECT_EQ(packed, compress(bytes).value()) << "the same each time";
    EXPECT_EQ(decompress(packed, bytes.size()).value(), bytes);
    EXPECT_FALSE(decompress(packed, bytes.size() - 1).ok());
    EXPECT_FALSE(decompress(packed, bytes.size() + 1).ok());
    EXPECT_FALSE(decompress(packed.substr(0, packed.size() / 2), bytes.size()).ok());
  }
  EXPECT_LT(compress(std::string(1 << 20, 'x')).value().size(), 1000u);
  EXPECT_FALSE(decompress("no such thing", 13).ok());
}

}  // namespace
}  // namespace atl::store
