#include "base/file.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

namespace atl {
namespace {

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/atoll-file-test-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  unsigned mode_of(const std::string& name) const {
    struct stat status = {};
    return stat(path(name).c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
  }

  std::string directory_;
};

TEST_F(FileTest, OpenedFilesAreClosedOnExec) {
  auto fd = open_file(path("a"), O_RDWR | O_CREAT, 0600);
  ASSERT_TRUE(fd.ok());
  EXPECT_TRUE(fcntl(fd->get(), F_GETFD) & FD_CLOEXEC);
}

TEST_F(FileTest, OpenThatFailsNamesThePathAndTheErrno) {
  auto fd = open_file(path("missing"), O_RDONLY);
  ASSERT_FALSE(fd.ok());
  EXPECT_EQ(fd.error().code(), Code::kNotFound);
  EXPECT_EQ(fd.error().system_errno(), ENOENT);
  EXPECT_NE(fd.error().message().find(path("missing")), std::string::npos);
}

TEST_F(FileTest, ReadGivesEveryByteUpToTheLimit) {
  std::string content(10'000, 'x');
  content[5000] = '\0';
  ASSERT_TRUE(replace_file(path("a"), content, 0600).ok());
  auto whole = read_file(path("a"), content.size());
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(*whole, content);
}

TEST_F(FileTest, FileOverTheLimitIsAnErrorNotACut) {
  ASSERT_TRUE(replace_file(path("a"), "12345", 0600).ok());
  auto cut = read_file(path("a"), 4);
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().code(), Code::kExhausted);
  EXPECT_NE(cut.error().message().find(path("a")), std::string::npos);
}

TEST_F(FileTest, EndlessFileStopsAtTheLimit) {
  auto endless = read_file("/dev/zero", 1000);
  ASSERT_FALSE(endless.ok());
  EXPECT_EQ(endless.error().code(), Code::kExhausted);
}

TEST_F(FileTest, ReadOfADirectoryFails) {
  auto bytes = read_file(directory_);
  ASSERT_FALSE(bytes.ok());
  EXPECT_EQ(bytes.error().system_errno(), EISDIR);
}

TEST_F(FileTest, WriteAtNeverCreates) {
  auto directory = open_file(directory_, O_RDONLY | O_DIRECTORY);
  ASSERT_TRUE(directory.ok());
  auto missing = write_file_at(directory->get(), "control", "1");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code(), Code::kNotFound);

  ASSERT_TRUE(replace_file(path("control"), "0", 0600).ok());
  EXPECT_TRUE(write_file_at(directory->get(), "control", "1").ok());
  EXPECT_EQ(*read_file_at(directory->get(), "control"), "1");
}

TEST_F(FileTest, WriteToAFullDeviceIsReported) {
  auto full = open_file("/dev/full", O_WRONLY);
  ASSERT_TRUE(full.ok());
  auto written = write_all(full->get(), "x");
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code(), Code::kExhausted);
}

TEST_F(FileTest, WriteAllGoesOnAfterShortWrites) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  Fd reader(ends[0]), writer(ends[1]);
  std::string content(300'000, 'y');  // several times what a pipe holds
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(write_all(writer.get(), content).ok() ? 0 : 1);
  writer.reset();
  auto received = read_all(reader.get(), content.size());
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(received.ok());
  EXPECT_EQ(*received, content);
}

TEST_F(FileTest, ReplaceSetsTheModeWhateverTheUmask) {
  mode_t old = umask(0077);
  EXPECT_TRUE(replace_file(path("a"), "x", 0644).ok());
  umask(old);
  EXPECT_EQ(mode_of("a"), 0644u);
}

TEST_F(FileTest, ReplaceLeavesOneFileAndKeepsOldReadersWhole) {
  ASSERT_TRUE(replace_file(path("a"), "old content", 0600).ok());
  auto reader = open_file(path("a"), O_RDONLY);
  ASSERT_TRUE(reader.ok());
  ASSERT_TRUE(replace_file(path("a"), "new", 0600).ok());
  EXPECT_EQ(*read_all(reader->get()), "old content");
  EXPECT_EQ(*read_file(path("a")), "new");
  size_t entries = 0;
  for ([[maybe_unused]] auto& entry : std::filesystem::directory_iterator(directory_)) ++entries;
  EXPECT_EQ(entries, 1u);
}

TEST_F(FileTest, ReplaceThroughAPlantedLinkIsRefused) {
  ASSERT_TRUE(replace_file(path("victim"), "precious", 0600).ok());
  ASSERT_EQ(symlink(path("victim").c_str(), path("a.new").c_str()), 0);
  EXPECT_FALSE(replace_file(path("a"), "x", 0600).ok());
  EXPECT_EQ(*read_file(path("victim")), "precious");
}

TEST_F(FileTest, MakeDirectoryAcceptsOneThatExistsButNotAFile) {
  EXPECT_TRUE(make_directory(path("d"), 0700).ok());
  EXPECT_TRUE(make_directory(path("d"), 0700).ok());
  ASSERT_TRUE(replace_file(path("f"), "", 0600).ok());
  auto over_file = make_directory(path("f"), 0700);
  ASSERT_FALSE(over_file.ok());
  EXPECT_EQ(over_file.error().system_errno(), ENOTDIR);
}

}  // namespace
}  // namespace atl
