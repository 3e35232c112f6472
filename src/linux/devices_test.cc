#include "linux/devices.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include <gtest/gtest.h>

#include "base/file.h"

namespace atl::linux {
namespace {

std::set<std::string> nodes_in(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    // Not what a link points to: that of stdin may be a device.
    if (entry.symlink_status().type() == std::filesystem::file_type::character)
      names.insert(entry.path().filename());
  return names;
}

// What is mounted is seen by the child alone.
template <typename Look>
bool in_own_mounts(Look look) {
  pid_t child = fork();
  if (child == 0) {
    bool apart = unshare(CLONE_NEWNS) == 0 &&
                 mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    _exit(apart && look() ? 0 : 1);
  }
  int status = -1;
  return waitpid(child, &status, 0) == child && status == 0;
}

class DeviceTrees : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: mounts and nodes";
    char name[] = "/tmp/atoll-devices-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  const std::set<std::string> harmless_ = {"full", "null", "random", "tty", "urandom", "zero"};
  std::string directory_;
};

TEST_F(DeviceTrees, OfAllAreTheHarmlessOnes) {
  std::string target = directory_ + "/all";
  EXPECT_TRUE(in_own_mounts([&] {
    auto made = mount_devices(target);
    return made && *made && nodes_in(target) == harmless_;
  }));
}

TEST_F(DeviceTrees, WithKvmAreOneMoreWhereThatIsThere) {
  std::string target = directory_ + "/machine";
  bool there = std::filesystem::is_character_file("/dev/kvm");
  std::set<std::string> expected = harmless_;
  expected.insert("kvm");
  EXPECT_TRUE(in_own_mounts([&] {
    auto made = mount_devices(target, Devices::kWithKvm);
    if (!there) return made.ok() && !*made && !std::filesystem::exists(target);
    return made && *made && nodes_in(target) == expected;
  }));
}

}  // namespace
}  // namespace atl::linux
