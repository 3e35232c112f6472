#include "sandbox/text_diff.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace atl::sandbox {
namespace {

std::string numbered(int count, int changed = -1) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += i == changed ? "other\n" : "line " + std::to_string(i) + "\n";
  return text;
}

TEST(TextDiff, SameTextsHaveNone) {
  EXPECT_EQ(unified_diff("", "", "/f"), "");
  EXPECT_EQ(unified_diff("a\nb\n", "a\nb\n", "/f"), "");
}

TEST(TextDiff, ChangedLineHasItsContext) {
  EXPECT_EQ(unified_diff(numbered(9), numbered(9, 4), "/home/user/f"),
            "--- a/home/user/f\n+++ b/home/user/f\n@@ -2,7 +2,7 @@\n line 1\n line 2\n line 3\n"
            "-line 4\n+other\n line 5\n line 6\n line 7\n");
}

TEST(TextDiff, FileThatBegins) {
  EXPECT_EQ(unified_diff("", "a\nb\n", "/f"), "--- a/f\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n");
}

TEST(TextDiff, FileThatEnds) {
  EXPECT_EQ(unified_diff("a\n", "", "/f"), "--- a/f\n+++ b/f\n@@ -1,1 +0,0 @@\n-a\n");
}

TEST(TextDiff, MissingLastNewlineIsSaid) {
  EXPECT_EQ(unified_diff("a\nb\n", "a\nb", "/f"),
            "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n");
}

TEST(TextDiff, EditsFarApartAreHunksOfTheirOwn) {
  std::string after = "first\n" + numbered(20) + "last\n";
  EXPECT_EQ(unified_diff(numbered(20), after, "/f"),
            "--- a/f\n+++ b/f\n@@ -1,3 +1,4 @@\n+first\n line 0\n line 1\n line 2\n"
            "@@ -18,3 +19,4 @@\n line 17\n line 18\n line 19\n+last\n");
}

TEST(TextDiff, TextsThatShareNothingAreReplacedInOnePiece) {
  std::string before, after;
  for (int i = 0; i < 5000; ++i) {
    before += "a" + std::to_string(i) + "\n";
    after += "b" + std::to_string(i) + "\n";
  }
  std::string diff = unified_diff(before, after, "/f");
  EXPECT_EQ(diff.find("@@ -1,5000 +1,5000 @@\n-a0\n"), diff.find("@@"));
  EXPECT_EQ(std::count(diff.begin(), diff.end(), '\n'), 3 + 2 * 5000);
}

}  // namespace
}  // namespace atl::sandbox
