#include "linux/btrfs_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "base/file.h"

namespace atl::linux {
namespace {

constexpr uint64_t kLength = 64ull << 20;

class FileOfBlocks : public testing::Test {
 protected:
  FileOfBlocks() {
    char name[] = "/tmp/atoll-btrfs-file-test-XXXXXX";
    directory_ = mkdtemp(name);
    file_ = open_file(directory_ + "/file", O_RDWR | O_CREAT, 0600).value();
    EXPECT_EQ(ftruncate(file_.get(), kLength), 0);
  }
  ~FileOfBlocks() override { std::filesystem::remove_all(directory_); }

  uint64_t blocks() const {
    struct stat status = {};
    EXPECT_EQ(fstat(file_.get(), &status), 0);
    return static_cast<uint64_t>(status.st_blocks) * 512;
  }

  std::string directory_;
  Fd file_;
};

TEST_F(FileOfBlocks, GetsThemForAllItsLengthAndKeepsWhatIsInIt) {
  ASSERT_EQ(pwrite(file_.get(), "there", 5, 1 << 20), 5);
  ASSERT_TRUE(allocate_whole_file(file_.get(), 0).ok());
  EXPECT_GE(blocks(), kLength);
  char bytes[5];
  ASSERT_EQ(pread(file_.get(), bytes, sizeof bytes, 1 << 20), 5);
  EXPECT_EQ(std::string(bytes, 5), "there");
  EXPECT_TRUE(allocate_whole_file(file_.get(), 1ull << 60).ok()) << "it has them already";
}

TEST_F(FileOfBlocks, GetsNoneIfTooLittleWouldBeLeft) {
  auto refused = allocate_whole_file(file_.get(), 1ull << 60);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().system_errno(), ENOSPC);
  EXPECT_EQ(blocks(), 0u);
}

}  // namespace
}  // namespace atl::linux
