#include "base/utf8.h"

#include <string>

#include <gtest/gtest.h>

namespace atl {
namespace {

// The bytes of one code point, valid or not, in `length` bytes.
std::string encoded(uint32_t code_point, int length) {
  if (length == 1) return std::string(1, static_cast<char>(code_point));
  std::string bytes;
  for (int i = 1; i < length; ++i) {
    bytes.insert(bytes.begin(), static_cast<char>(0x80 | (code_point & 0x3f)));
    code_point >>= 6;
  }
  constexpr int kLead[] = {0, 0, 0xc0, 0xe0, 0xf0};
  bytes.insert(bytes.begin(), static_cast<char>(kLead[length] | code_point));
  return bytes;
}

int shortest(uint32_t code_point) {
  if (code_point < 0x80) return 1;
  if (code_point < 0x800) return 2;
  return code_point < 0x10000 ? 3 : 4;
}

TEST(Utf8, EveryScalarValueIsValidInItsShortestFormOnly) {
  for (uint32_t code_point = 0; code_point <= 0x1fffff; ++code_point) {
    bool is_surrogate = code_point >= 0xd800 && code_point <= 0xdfff;
    bool is_scalar = code_point <= 0x10ffff && !is_surrogate;
    int length = shortest(code_point);
    size_t wanted = is_scalar ? static_cast<size_t>(length) : 0;
    ASSERT_EQ(utf8_sequence_length(encoded(code_point, length)), wanted) << code_point;
    for (int overlong = length + 1; overlong <= 4; ++overlong) {
      ASSERT_EQ(utf8_sequence_length(encoded(code_point, overlong)), 0u) << code_point;
    }
  }
}

TEST(Utf8, SequenceCutShortIsInvalidAtEveryLength) {
  for (std::string whole : {"é", "€", "😀"}) {
    for (size_t length = 1; length < whole.size(); ++length) {
      EXPECT_FALSE(is_utf8(whole.substr(0, length)));
      EXPECT_FALSE(is_utf8(whole.substr(0, length) + "a"));
    }
  }
}

TEST(Utf8, StrayAndImpossibleBytesAreInvalid) {
  for (std::string bad : {"\x80", "\xbf", "\xc0", "\xc1", "\xf5", "\xfe", "\xff"}) {
    EXPECT_FALSE(is_utf8(bad));
    EXPECT_FALSE(is_utf8("text " + bad));
  }
}

TEST(Utf8, TextIsValidOnlyAsAWhole) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("plain"));
  EXPECT_TRUE(is_utf8(std::string_view("a\0é", 4)));
  EXPECT_FALSE(is_utf8("é\xff€"));
  EXPECT_EQ(utf8_sequence_length(""), 0u);
}

TEST(Utf8, WhatIsNoTextIsReadable) {
  EXPECT_EQ(readable_utf8("a\xc3\xa4"), "a\xc3\xa4");
  EXPECT_EQ(readable_utf8("\xa4"
                          "a\xff\xc3"),
            "\xef\xbf\xbd"
            "a\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(readable_utf8(""), "");
}

}  // namespace
}  // namespace atl
