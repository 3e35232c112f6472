#include "cli/log_file.h"

#include "base/file.h"
#include "cli/fixture_test.h"

namespace atl::cli {
namespace {

TEST(LogFile, KeepsItsBytesInASecondFileWhenItIsOverTheLimit) {
  TempDir dir;
  LogFile log = LogFile::open(dir / "log", 10).value();
  ASSERT_TRUE(write_all(log.fd(), "0123456789").ok());
  ASSERT_TRUE(log.rotate().ok());
  EXPECT_EQ(read_text(dir / "log"), "0123456789");
  ASSERT_TRUE(write_all(log.fd(), "x").ok());
  ASSERT_TRUE(log.rotate().ok());
  EXPECT_EQ(read_text(dir / "log.1"), "0123456789x");
  ASSERT_TRUE(write_all(log.fd(), "next").ok());
  EXPECT_EQ(read_text(dir / "log"), "next");
}

TEST(LogFile, OpeningAppends) {
  TempDir dir;
  write_text(dir / "log", "old\n");
  LogFile log = LogFile::open(dir / "log").value();
  ASSERT_TRUE(write_all(log.fd(), "new\n").ok());
  EXPECT_EQ(read_text(dir / "log"), "old\nnew\n");
}

TEST(LogFile, ShowsTheLastLines) {
  TempDir dir;
  write_text(dir / "log", "a\nb\nc\n");
  EXPECT_EQ(last_lines(dir / "log", 2), "b\nc\n");
  EXPECT_EQ(last_lines(dir / "log", 9), "a\nb\nc\n");
  write_text(dir / "log", "");
  EXPECT_EQ(last_lines(dir / "log", 2), "");
}

}  // namespace
}  // namespace atl::cli
