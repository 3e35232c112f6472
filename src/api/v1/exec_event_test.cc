#include "api/v1/exec_event.h"

#include <gtest/gtest.h>

namespace atl::api::v1 {
namespace {

TEST(ExecEvent, PositionIsTwoWholeNumbers) {
  auto position = parse_position("12-345");
  ASSERT_TRUE(position.has_value());
  EXPECT_EQ(position->standard_output, 12u);
  EXPECT_EQ(position->standard_error, 345u);
  EXPECT_EQ(position->id(), "12-345");
  for (std::string_view text :
       {"", "-", "1", "1-", "-1", "1-2-3", "1 -2", "+1-2", "1-2 ", "a-b", "18446744073709551616-0"})
    EXPECT_FALSE(parse_position(text).has_value()) << text;
}

TEST(ExecEvent, CharacterAtTheEndIsHeldBackUntilItIsWhole) {
  EXPECT_EQ(whole_characters(""), 0u);
  EXPECT_EQ(whole_characters("abc"), 3u);
  EXPECT_EQ(whole_characters("a\xc3"), 1u);
  EXPECT_EQ(whole_characters("a\xc3\xa9"), 3u);
  EXPECT_EQ(whole_characters("\xe2\x82"), 0u);
  EXPECT_EQ(whole_characters("\xe2\x82\xac"), 3u);
  EXPECT_EQ(whole_characters("x\xf0\x9f\x98"), 1u);
  EXPECT_EQ(whole_characters("x\xf0\x9f\x98\x80"), 5u);
  // What no byte can complete is not waited for.
  EXPECT_EQ(whole_characters("\x80\x80\x80\x80"), 4u);
  EXPECT_EQ(whole_characters("\xff"), 1u);
  EXPECT_EQ(whole_characters("\xc0"), 1u);
}

TEST(ExecEvent, DataIsOneLineWhateverWasPrinted) {
  EXPECT_EQ(output_data("a\r\nb\"\\"), "{\"text\":\"a\\r\\nb\\\"\\\\\"}");
  EXPECT_EQ(output_data(std::string_view("\0\x1b", 2)), "{\"text\":\"\\u0000\\u001b\"}");
  EXPECT_EQ(output_data("\xff\n"), "{\"base64\":\"/wo=\"}");
}

}  // namespace
}  // namespace atl::api::v1
