#include "store/sha256.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "store/test_directory.h"

namespace atl::store {
namespace {

// FIPS 180-2, appendix B.
constexpr std::string_view kAbc =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr std::string_view kEmpty =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr std::string_view kMillionA =
    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

TEST(Sha256, GivesTheStandardDigests) {
  EXPECT_EQ(sha256("").string(), kEmpty);
  EXPECT_EQ(sha256("abc").string(), kAbc);
}

TEST(Sha256, PartsGiveTheSameAsTheWhole) {
  Sha256 hash;
  for (int i = 0; i < 1000; ++i) hash.update(std::string(1000, 'a'));
  EXPECT_EQ(hash.finish().string(), kMillionA);
}

TEST(Sha256, FileGivesTheDigestOfItsBytes) {
  TestDirectory directory;
  ASSERT_TRUE(replace_file(directory / "file", std::string(1'000'000, 'a'), 0600).ok());
  auto digest = sha256_of_file(directory / "file");
  ASSERT_TRUE(digest.ok());
  EXPECT_EQ(digest->string(), kMillionA);
  EXPECT_EQ(sha256_of_file(directory / "missing").error().code(), Code::kNotFound);
  EXPECT_FALSE(sha256_of_file(directory.path()).ok());
}

TEST(Sha256, EqualOnlyWhenLengthAndBytesAre) {
  Digest a = sha256("a");
  Digest b = sha256("b");
  EXPECT_TRUE(constant_time_equal(a.bytes(), sha256("a").bytes()));
  EXPECT_FALSE(constant_time_equal(a.bytes(), b.bytes()));
  EXPECT_FALSE(constant_time_equal(a.bytes(), std::span(a.bytes()).first(31)));
}

// RFC 4231, 4.3.
TEST(HmacSha256, IsTheOneOfTheStandard) {
  EXPECT_EQ(hmac_sha256("Jefe", "what do ya want for nothing?").string(),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

}  // namespace
}  // namespace atl::store
