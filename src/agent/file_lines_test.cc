#include "agent/file_lines.h"

#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "agent/file_protocol.h"

namespace atl::agent {
namespace {

using Found = std::vector<std::pair<uint64_t, std::string>>;

// The whole text in pieces of each size up to ten: where it is cut must not matter.
Found search(const std::string& text, const std::string& wanted) {
  std::optional<Found> all;
  for (size_t piece = 1; piece <= 10; ++piece) {
    Found found;
    LineSearch lines(wanted, [&](const LineSearch::Line& line) {
      found.push_back({line.number, std::string(line.text)});
      return true;
    });
    bool more = true;
    for (size_t at = 0; at < text.size() && more; at += piece)
      more = lines.add(std::string_view(text).substr(at, piece));
    if (more) lines.finish();
    if (all) {
      EXPECT_EQ(found, *all) << piece;
    }
    all = found;
  }
  return *all;
}

TEST(LineSearch, TellsEachLineOnce) {
  EXPECT_EQ(search("one\ntwo two\nthree\ntwo", "two"), (Found{{2, "two two"}, {4, "two"}}));
  EXPECT_EQ(search("aaa\nab\n", "ab"), (Found{{2, "ab"}}));
  EXPECT_EQ(search("a\nb", "ab"), Found{});
  EXPECT_EQ(search("xaab", "aab"), (Found{{1, "xaab"}}));
  EXPECT_EQ(search("\n\nx", "x"), (Found{{3, "x"}}));
}

TEST(LineSearch, StopsAtANul) {
  EXPECT_EQ(search(std::string("two\nx\0two\n", 10), "zwo"), Found{});
  LineSearch lines("a", [](const LineSearch::Line&) { return true; });
  EXPECT_TRUE(lines.add("abc"));
  EXPECT_FALSE(lines.add(std::string_view("\0", 1)));
}

TEST(LineSearch, LongLinesAreFoundAndCut) {
  std::string line = std::string(100'000, 'x') + "needle" + std::string(100'000, 'y');
  Found found = search(line, "needle");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].second, std::string(kMaxMatchTextBytes, 'x'));
}

TEST(LineSearch, EndsWhenItHasEnough) {
  int count = 0;
  LineSearch lines("a", [&](const LineSearch::Line&) { return ++count < 2; });
  EXPECT_FALSE(lines.add("a\na\na\n"));
  EXPECT_EQ(count, 2);
}

}  // namespace
}  // namespace atl::agent
