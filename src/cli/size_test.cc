#include "cli/size.h"

#include <gtest/gtest.h>

namespace atl::cli {
namespace {

TEST(Size, IsANumberWithABinaryUnit) {
  EXPECT_EQ(parse_size("4096").value(), 4096u);
  EXPECT_EQ(parse_size("0").value(), 0u);
  EXPECT_EQ(parse_size("7B").value(), 7u);
  EXPECT_EQ(parse_size("64KiB").value(), 64u << 10);
  EXPECT_EQ(parse_size("512MiB").value(), 512u << 20);
  EXPECT_EQ(parse_size("3GiB").value(), 3ull << 30);
  EXPECT_EQ(parse_size("2TiB").value(), 2ull << 40);
}

TEST(Size, NonsenseIsRefused) {
  for (const char* text : {"", "MiB", "1MB", "1 MiB", "-1", "1.5GiB", "1mib",
                           "99999999999999999999", "18446744073709551615KiB"})
    EXPECT_FALSE(parse_size(text).ok()) << text;
}

}  // namespace
}  // namespace atl::cli
