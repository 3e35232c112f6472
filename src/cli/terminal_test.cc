#include "cli/terminal.h"

#include <fcntl.h>
#include <pty.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/fd.h"

namespace atl::cli {
namespace {

TEST(Terminal, ShowsControlCharactersInsteadOfObeyingThem) {
  EXPECT_EQ(escape_controls("\x1b[2J\a\b\x7f"), "\\x1b[2J\\x07\\x08\\x7f");
  EXPECT_EQ(escape_controls(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(Terminal, KeepsLinesTabsAndText) {
  EXPECT_EQ(escape_controls("a\tb\r\nc ü € 😀"), "a\tb\r\nc ü € 😀");
}

TEST(Terminal, EscapesC1ControlsAndWhatIsNotUtf8) {
  EXPECT_EQ(escape_controls("\xc2\x9b"
                            "2J"),
            "\\xc2\\x9b2J");
  EXPECT_EQ(escape_controls("\x9b\xff\xc3"), "\\x9b\\xff\\xc3");
  EXPECT_EQ(escape_controls("\xc2\xa0"), "\xc2\xa0");
}

TEST(Terminal, ALineStaysOneLine) { EXPECT_EQ(escape_line("a\nb\r\tc"), "a\\x0ab\\x0d\\x09c"); }

std::string written_to_pipe(std::string_view bytes, OutputMode mode) {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  Fd reader(ends[0]), writer(ends[1]);
  OutputWriter output(writer.get(), mode);
  EXPECT_TRUE(output.write(bytes).ok());
  EXPECT_TRUE(output.finish().ok());
  char buffer[64];
  return std::string(buffer, static_cast<size_t>(read(reader.get(), buffer, sizeof buffer)));
}

std::string written_to_terminal(std::string_view bytes, OutputMode mode) {
  int master, slave;
  EXPECT_EQ(openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
  Fd reader(master), writer(slave);
  OutputWriter output(writer.get(), mode);
  EXPECT_TRUE(output.write(bytes).ok());
  EXPECT_TRUE(output.finish().ok());
  char buffer[64];
  return std::string(buffer, static_cast<size_t>(read(reader.get(), buffer, sizeof buffer)));
}

TEST(Terminal, EscapesOnATerminalOnlyAndNeverWhenRaw) {
  EXPECT_EQ(written_to_pipe("\x1b[1m", OutputMode::kSafe), "\x1b[1m");
  EXPECT_EQ(written_to_terminal("\x1b[1m", OutputMode::kSafe), "\\x1b[1m");
  EXPECT_EQ(written_to_terminal("\x1b[1m", OutputMode::kRaw), "\x1b[1m");
}

TEST(Terminal, CharactersSurviveWhereverThePiecesAreCut) {
  std::string text = "a\u00e9\u20ac\U0001f40a\xff\xe2\x82z\xf0\x9f";
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    int master, slave;
    ASSERT_EQ(openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
    Fd reader(master), writer(slave);
    OutputWriter output(writer.get(), OutputMode::kSafe);
    for (size_t at = 0; at < text.size(); at += piece)
      ASSERT_TRUE(output.write(std::string_view(text).substr(at, piece)).ok());
    ASSERT_TRUE(output.finish().ok());
    // The terminal hands over what was written in its own time.
    std::string expected = "a\u00e9\u20ac\U0001f40a\\xff\\xe2\\x82z\\xf0\\x9f";
    std::string shown;
    while (shown.size() < expected.size()) {
      char buffer[128];
      ssize_t count = read(reader.get(), buffer, sizeof buffer);
      ASSERT_GT(count, 0);
      shown.append(buffer, static_cast<size_t>(count));
    }
    EXPECT_EQ(shown, expected) << piece;
  }
}

}  // namespace
}  // namespace atl::cli
