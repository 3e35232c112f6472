#include "cli/line_editor.h"

#include <gtest/gtest.h>

namespace atl::cli {
namespace {

EditedLine typed(const std::vector<std::string>& history, std::vector<std::string> keys) {
  EditedLine line(history);
  for (const std::string& key : keys) line.press(key);
  return line;
}

TEST(EditedLine, CharactersAndTheCursor) {
  std::vector<std::string> none;
  EXPECT_EQ(typed(none, {"a", "é", "b"}).text(), "aéb");
  EXPECT_EQ(typed(none, {"a", "é", "b", "\x1b[D", "\x1b[D", "x"}).text(), "axéb");
  EXPECT_EQ(typed(none, {"a", "é", "\x7f"}).text(), "a");
  EXPECT_EQ(typed(none, {"a", "b", "\x01", "c", "\x05", "d"}).text(), "cabd");
  EXPECT_EQ(typed(none, {"a", "é", "\x1b[D", "\x1b[3~"}).text(), "a");
  EXPECT_EQ(typed(none, {"\x7f", "\x1b[D", "\x1b[C", "\x04"}).text(), "");
}

TEST(EditedLine, ErasesWordsAndEnds) {
  std::vector<std::string> none;
  EditedLine line(none);
  line.insert("one two three");
  line.press("\x17");
  EXPECT_EQ(line.text(), "one two ");
  line.press("\x1b[D");
  line.press("\x0b");
  EXPECT_EQ(line.text(), "one two");
  line.press("\x15");
  EXPECT_EQ(line.text(), "");
  EXPECT_EQ(line.cursor(), 0u);
}

TEST(EditedLine, GoesThroughTheHistoryAndBack) {
  std::vector<std::string> history{"first", "second"};
  EXPECT_EQ(typed(history, {"x", "\x1b[A"}).text(), "second");
  EXPECT_EQ(typed(history, {"x", "\x1b[A", "\x1b[A", "\x1b[A"}).text(), "first");
  EXPECT_EQ(typed(history, {"x", "\x1b[A", "\x1b[A", "\x1b[B", "\x1b[B", "\x1b[B"}).text(), "x");
}

TEST(EditedLine, CompletesFromAPlaceOn) {
  std::vector<std::string> none;
  EditedLine line(none);
  line.insert("x = os.pa");
  line.complete(4, "os.path");
  EXPECT_EQ(line.text(), "x = os.path");
  EXPECT_EQ(line.cursor(), line.text().size());
  line.complete(100, "nothing");
  EXPECT_EQ(line.text(), "x = os.path");
}

TEST(EditedLine, OtherControlsDoNothing) {
  std::vector<std::string> none;
  EXPECT_EQ(typed(none, {"\x1b[5~", "\x1b", "\x1bx", "\x18"}).text(), "");
}

}  // namespace
}  // namespace atl::cli
