#include "gvisor/redirect.h"

#include <cstring>

#include <gtest/gtest.h>

namespace atl::gvisor {
namespace {

uint32_t number_at(const std::string& text, size_t offset) {
  uint32_t number;
  std::memcpy(&number, text.data() + offset, sizeof number);
  return number;
}

// As <linux/netfilter_ipv4/ip_tables.h> has it.
TEST(Redirect, TheTableIsOfTheKernelsForm) {
  std::string table = redirect_table({198, 18, 0, 1}, 1);
  EXPECT_STREQ(table.data(), "nat");
  EXPECT_EQ(number_at(table, 32), 0b11011u) << "the hooks of that table";
  uint32_t entries = number_at(table, 36), bytes = number_at(table, 40);
  ASSERT_EQ(table.size(), 96 + bytes);
  uint32_t offset = 0, seen = 0;
  for (; offset < bytes; ++seen) {
    uint16_t target, next;
    std::memcpy(&target, table.data() + 96 + offset + 88, sizeof target);
    std::memcpy(&next, table.data() + 96 + offset + 90, sizeof next);
    ASSERT_EQ(target, 112);
    ASSERT_GT(next, target);
    ASSERT_EQ(next % 8, 0);
    offset += next;
  }
  EXPECT_EQ(offset, bytes);
  EXPECT_EQ(seen, entries);
  EXPECT_NE(table.find("REDIRECT"), table.npos);
}

}  // namespace
}  // namespace atl::gvisor
