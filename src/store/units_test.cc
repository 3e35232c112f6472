#include "store/units.h"

#include <gtest/gtest.h>

namespace atl::store {
namespace {

TEST(Units, SizesAreInBytes) {
  EXPECT_EQ(parse_size("100B"), 100u);
  EXPECT_EQ(parse_size("64KiB"), 64u << 10);
  EXPECT_EQ(parse_size("512MiB"), 512ull << 20);
  EXPECT_EQ(parse_size("1GiB"), 1ull << 30);
  EXPECT_EQ(parse_size("2TiB"), 2ull << 40);
  EXPECT_EQ(parse_size("0B"), 0u);
}

TEST(Units, DurationsAreInMilliseconds) {
  EXPECT_EQ(parse_duration("500ms"), 500u);
  EXPECT_EQ(parse_duration("30s"), 30'000u);
  EXPECT_EQ(parse_duration("5m"), 300'000u);
  EXPECT_EQ(parse_duration("2h"), 7'200'000u);
  EXPECT_EQ(parse_duration("7d"), 604'800'000u);
}

TEST(Units, AnythingElseIsRefused) {
  for (std::string_view text :
       {"", "5", "MiB", "-5MiB", "+5MiB", "5 MiB", " 5MiB", "5MiB ", "5MB", "5mib", "1.5GiB",
        "0x5B", "18446744073709551616B", "18446744073709551615KiB", "5s"})
    EXPECT_FALSE(parse_size(text).has_value()) << text;
  for (std::string_view text :
       {"", "5", "s", "-5s", "5 s", "5sec", "1.5h", "5M", "5MiB", "18446744073709551615d"})
    EXPECT_FALSE(parse_duration(text).has_value()) << text;
}

}  // namespace
}  // namespace atl::store
