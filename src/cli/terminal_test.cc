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
  EXPECT_TRUE(write_output(writer.get(), bytes, mode).ok());
  char buffer[64];
  return std::string(buffer, static_cast<size_t>(read(reader.get(), buffer, sizeof buffer)));
}

std::string written_to_terminal(std::string_view bytes, OutputMode mode) {
  int master, slave;
  EXPECT_EQ(openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
  Fd reader(master), writer(slave);
  EXPECT_TRUE(write_output(writer.get(), bytes, mode).ok());
  char buffer[64];
  return std::string(buffer, static_cast<size_t>(read(reader.get(), buffer, sizeof buffer)));
}

TEST(Terminal, EscapesOnATerminalOnlyAndNeverWhenRaw) {
  EXPECT_EQ(written_to_pipe("\x1b[1m", OutputMode::kSafe), "\x1b[1m");
  EXPECT_EQ(written_to_terminal("\x1b[1m", OutputMode::kSafe), "\\x1b[1m");
  EXPECT_EQ(written_to_terminal("\x1b[1m", OutputMode::kRaw), "\x1b[1m");
}

}  // namespace
}  // namespace atl::cli
