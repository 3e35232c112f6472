#include "cli/terminal_filter.h"

#include <gtest/gtest.h>

#include "cli/detach_keys.h"

namespace atl::cli {
namespace {

std::string passed(std::string_view bytes, size_t piece) {
  TerminalFilter filter;
  std::string out;
  for (size_t at = 0; at < bytes.size(); at += piece) out += filter.pass(bytes.substr(at, piece));
  return out;
}

TEST(TerminalFilter, TextColoursAndCursorPass) {
  for (std::string_view text :
       {"plain\r\n\ttext\a\b", "\x1b[1;31mred\x1b[0m", "\x1b[2J\x1b[10;20H", "\x1b[?1049h",
        "\x1b"
        "7",
        "\x1b(B", "\xc3\xa9\xe2\x82\xac", "\xc2\xa0", "\x1b[6q", "\x1b[>4;2m"})
    for (size_t piece = 1; piece <= text.size(); ++piece) EXPECT_EQ(passed(text, piece), text);
}

TEST(TerminalFilter, WhatSpeaksToTheTerminalItselfDoesNot) {
  for (std::string_view text : {"\x1b]0;title\x07", "\x1b]52;c;ZXZpbA==\x1b\\", "\x1bP+q544e\x1b\\",
                                "\x1b_apc\x1b\\", "\x1b^pm\x1b\\", "\x1bXsos\x1b\\", "\x1b[c",
                                "\x1b[>c", "\x1b[6n", "\x1b[21t", "\x1bZ", "\x05",
                                "\xc2\x9d"
                                "52",
                                "\x1b[?1$p", "\x1b]0;a\x1bx still\x07"})
    for (size_t piece = 1; piece <= text.size(); ++piece) {
      std::string shown = passed(std::string(text) + "|", piece);
      EXPECT_EQ(shown.substr(shown.size() - 1), "|") << text;
      EXPECT_EQ(shown.find('\x1b'), std::string::npos) << text;
      EXPECT_EQ(shown.find('\xc2'), std::string::npos) << text;
    }
  EXPECT_EQ(passed("\x1b[" + std::string(100, '1') + "m", 7).find('\x1b'), std::string::npos);
}

TEST(DetachKeys, EnterTildeDotLeaves) {
  for (const char* typed : {"~.", "ls\r~.", "\n~.x"}) {
    DetachKeys keys;
    keys.take(typed);
    EXPECT_TRUE(keys.is_asked()) << typed;
  }
  DetachKeys keys;
  EXPECT_EQ(keys.take("a~."), "a~.");
  EXPECT_EQ(keys.take("\r~"), "\r");
  EXPECT_EQ(keys.take("~"), "~");
  EXPECT_EQ(keys.take("\r~x"), "\r~x");
  EXPECT_FALSE(keys.is_asked());
  EXPECT_EQ(keys.take("\r~.rest"), "\r");
  EXPECT_TRUE(keys.is_asked());
}

}  // namespace
}  // namespace atl::cli
