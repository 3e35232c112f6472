#include "base/glob.h"

#include <ctime>

#include <gtest/gtest.h>

namespace atl {
namespace {

bool fits(std::string_view pattern, std::string_view text) {
  auto glob = Glob::parse(pattern);
  return glob.ok() && glob->matches(text);
}

TEST(Glob, PlainCharactersMeanThemselves) {
  EXPECT_TRUE(fits("abc", "abc"));
  EXPECT_FALSE(fits("abc", "abcd"));
  EXPECT_FALSE(fits("abc", "ab"));
  EXPECT_TRUE(fits("", ""));
  EXPECT_TRUE(fits("a\\*b", "a*b"));
  EXPECT_FALSE(fits("a\\*b", "axb"));
}

TEST(Glob, StarsAndQuestionMarksStayInOnePart) {
  EXPECT_TRUE(fits("*.txt", "a.txt"));
  EXPECT_TRUE(fits("*.txt", ".txt"));
  EXPECT_FALSE(fits("*.txt", "d/a.txt"));
  EXPECT_TRUE(fits("d/*.txt", "d/a.txt"));
  EXPECT_TRUE(fits("a?c", "abc"));
  EXPECT_FALSE(fits("a?c", "a/c"));
  EXPECT_FALSE(fits("a?c", "ac"));
  EXPECT_TRUE(fits("*a*b*", "xxaxxbxx"));
}

TEST(Glob, TwoStarsCrossParts) {
  EXPECT_TRUE(fits("**/b", "b"));
  EXPECT_TRUE(fits("**/b", "a/b"));
  EXPECT_TRUE(fits("**/b", "x/a/b"));
  EXPECT_FALSE(fits("**/b", "ab"));
  EXPECT_FALSE(fits("**/b", "x/ab"));
  EXPECT_TRUE(fits("a/**/b", "a/b"));
  EXPECT_TRUE(fits("a/**/b", "a/x/y/b"));
  EXPECT_TRUE(fits("a/**", "a/x/y"));
  EXPECT_TRUE(fits("**/*.c", "src/x/main.c"));
  EXPECT_FALSE(fits("**/*.c", "src/x/main.h"));
}

TEST(Glob, SetsHoldRangesOrAllOthers) {
  EXPECT_TRUE(fits("[a-c]x", "bx"));
  EXPECT_FALSE(fits("[a-c]x", "dx"));
  EXPECT_TRUE(fits("[!a-c]x", "dx"));
  EXPECT_FALSE(fits("[!a-c]x", "ax"));
  EXPECT_TRUE(fits("[]]", "]"));
  EXPECT_TRUE(fits("[a-]", "-"));
  EXPECT_FALSE(fits("a[/]b", "a/b"));
  EXPECT_FALSE(fits("a[!x]b", "a/b"));
}

TEST(Glob, CharactersAreThoseOfUtf8OrLoneBytes) {
  EXPECT_TRUE(fits("?", "é"));
  EXPECT_TRUE(fits("[à-ü]", "é"));
  EXPECT_TRUE(fits("?", "\xff"));
  EXPECT_FALSE(fits("?", "\xff\xfe"));
  EXPECT_TRUE(fits("*\xff", "a\xff"));
}

TEST(Glob, MalformedPatternsAreRefused) {
  for (const char* pattern : {"[a", "[", "a\\", "[z-a]", "[a-", "[!"})
    EXPECT_FALSE(Glob::parse(pattern).ok()) << pattern;
  EXPECT_FALSE(Glob::parse(std::string(1025, 'a')).ok());
}

TEST(Glob, NoPatternTakesForEver) {
  std::string pattern;
  for (int i = 0; i < 256; ++i) pattern += "*a";
  // Of the processor, so that others on the host do not count.
  auto used_seconds = [] { return clock() / CLOCKS_PER_SEC; };
  auto before = used_seconds();
  EXPECT_FALSE(fits(pattern + "b", std::string(4000, 'a')));
  EXPECT_LT(used_seconds() - before, 10);
}

}  // namespace
}  // namespace atl
