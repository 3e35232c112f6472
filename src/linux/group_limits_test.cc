#include "linux/group_limits.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"

namespace atl::linux {
namespace {

// A directory with files in the place of a group's: they keep what is longer than what is written.
class FileGroup : public testing::Test {
 protected:
  FileGroup() {
    EXPECT_NE(mkdtemp(path_), nullptr);
    group_ = std::move(open_file(path_, O_PATH | O_DIRECTORY)).value();
  }
  ~FileGroup() override {
    for (const std::string& name : names_) unlink((path_ + ("/" + name)).c_str());
    rmdir(path_);
  }
  void put(const std::string& name, const std::string& text) {
    ASSERT_TRUE(replace_file(path_ + ("/" + name), text, 0644).ok());
    names_.push_back(name);
  }

  char path_[32] = "/tmp/atoll-limits-XXXXXX";
  Fd group_;
  std::vector<std::string> names_;
};

TEST_F(FileGroup, ValueThatTheKernelDoesNotKeepIsAFailure) {
  auto set = [&] {
    return set_group_limit(group_.get(), GroupVersion::kV2, Controller::kPids, 64);
  };
  put("pids.max", "4194304\n");
  EXPECT_FALSE(set().ok());
  put("pids.max", "64\n");
  EXPECT_TRUE(set().ok());
  EXPECT_EQ(read_group_limit(group_.get(), GroupVersion::kV2, Controller::kPids).value(), 64u);
  put("pids.max", "max\n");
  EXPECT_FALSE(read_group_limit(group_.get(), GroupVersion::kV2, Controller::kPids).ok());
}

TEST_F(FileGroup, SocketsOfVersionOneAreLimitedWithItsMemory) {
  auto set = [&](uint64_t bytes) {
    return set_group_limit(group_.get(), GroupVersion::kV1, Controller::kMemory, bytes);
  };
  put("memory.limit_in_bytes", "1073741824\n");
  put("memory.swappiness", "0\n");
  EXPECT_FALSE(set(1 << 30).ok()) << "sockets cannot be limited";
  put("memory.kmem.tcp.limit_in_bytes", "134217728\n");
  EXPECT_TRUE(set(1 << 30).ok()) << "an eighth";
  put("memory.limit_in_bytes", "33554432\n");
  put("memory.kmem.tcp.limit_in_bytes", "8388608\n");
  EXPECT_TRUE(set(32 << 20).ok()) << "the least";
  put("memory.kmem.tcp.limit_in_bytes", "9223372036854771712\n");
  EXPECT_FALSE(set(32 << 20).ok()) << "not kept";
}

TEST_F(FileGroup, RateIsThatOfTheDevice) {
  dev_t device = makedev(7, 3);
  EXPECT_EQ(read_disk_rate(group_.get(), device).value(), 0u) << "no io controller";
  EXPECT_TRUE(set_disk_rate(group_.get(), device, 0).ok());
  EXPECT_FALSE(set_disk_rate(group_.get(), device, 65536).ok());
  put("io.max",
      "17:3 rbps=1 wbps=1 riops=max wiops=max\n7:3 rbps=65536 wbps=65536 riops=max "
      "wiops=max\n");
  EXPECT_EQ(read_disk_rate(group_.get(), device).value(), 65536u);
  EXPECT_EQ(read_disk_rate(group_.get(), makedev(17, 3)).value(), 1u);
  EXPECT_EQ(read_disk_rate(group_.get(), makedev(7, 33)).value(), 0u);
  put("io.max", "7:3 rbps=max wbps=max riops=5 wiops=max\n");
  EXPECT_EQ(read_disk_rate(group_.get(), device).value(), 0u);
  put("io.max", "7:3 rbps=65536 wbps=655360 riops=max wiops=max\n");
  EXPECT_FALSE(read_disk_rate(group_.get(), device).ok());
}

}  // namespace
}  // namespace atl::linux
