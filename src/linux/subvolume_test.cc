#include "linux/subvolume.h"

#include <fcntl.h>
#include <linux/btrfs.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "linux/loop_device.h"
#include "linux/mounts.h"
#include "linux/quota_groups.h"

namespace atl::linux {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLimitBytes = 8 << 20;

// A small btrfs with quotas, mounted in a process of its own, which takes the mount with it.
class MountedPool {
 public:
  MountedPool() {
    char path[] = "/tmp/atoll-subvolume-test-XXXXXX";
    directory_ = mkdtemp(path);
  }
  ~MountedPool() { fs::remove_all(directory_); }

  // In a child: mounts, then has `look` say whether all is well.
  template <typename Look>
  int run(Look look) {
    std::string file = directory_ + "/file", target = directory_ + "/mount";
    Fd backing(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!backing || ftruncate(backing.get(), 256 << 20) != 0) return -1;
    if (system(("mkfs.btrfs -q " + file + " >/dev/null").c_str()) != 0) return -2;
    fs::create_directory(target);
    pid_t child = fork();
    if (child == 0) {
      if (unshare(CLONE_NEWNS) != 0 || !make_all_mounts_private()) _exit(100);
      auto device = attach_loop_device(backing.get(), LoopAccess::kReadWrite);
      if (!device) _exit(101);
      // Freed after a commit: see the option of the same name in warden/layer_pool.cc.
      if (mount(device->path.c_str(), target.c_str(), "btrfs", 0, "commit=1") != 0) _exit(102);
      auto pool = open_file(target, O_RDONLY | O_DIRECTORY);
      if (!pool || !enable_btrfs_quotas(pool->get())) _exit(103);
      _exit(look(pool->get()));
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -3;
  }

 private:
  std::string directory_;
};

size_t count_quota_groups(int pool) {
  btrfs_ioctl_fs_info_args info = {};
  if (ioctl(pool, BTRFS_IOC_FS_INFO, &info) != 0) return 0;
  std::string id;
  for (size_t i = 0; i < sizeof info.fsid; ++i)
    id += fmt::format("{}{:02x}", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", info.fsid[i]);
  size_t count = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/sys/fs/btrfs/" + id + "/qgroups", error))
    count += entry.is_directory() ? 1 : 0;
  return count;
}

int write_file(int pool, const std::string& name, size_t bytes) {
  Fd file(openat(pool, name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  return write_all(file.get(), std::string(bytes, 'x')).ok() && fsync(file.get()) == 0 ? 0 : errno;
}

TEST(Subvolume, ALimitHoldsAndStaleQuotaGroupsAreRemoved) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: mounts a btrfs";
  MountedPool pool;
  int outcome = pool.run([](int directory) {
    size_t before = count_quota_groups(directory);
    if (before == 0) return 1;
    for (const char* name : {"one", "two", "three"}) {
      if (!create_subvolume(directory, name, kLimitBytes)) return 2;
      if (write_file(directory, name + std::string("/small"), kLimitBytes / 4) != 0) return 3;
      if (write_file(directory, name + std::string("/big"), kLimitBytes) != EDQUOT) return 4;
    }
    if (count_quota_groups(directory) != before + 3) return 5;
    for (const char* name : {"one", "two", "three"})
      if (!remove_subvolume(directory, name)) return 6;
    if (!create_subvolume(directory, "kept", kLimitBytes)) return 7;
    for (int i = 0; i < 600 && count_quota_groups(directory) != before + 1; ++i) {
      if (!remove_stale_quota_groups(directory)) return 8;
      usleep(100'000);
    }
    if (count_quota_groups(directory) != before + 1) return 9;
    return write_file(directory, "kept/big", 2 * kLimitBytes) == EDQUOT ? 0 : 10;
  });
  EXPECT_EQ(outcome, 0);
}

TEST(Subvolume, RemovingNoneIsASuccess) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: mounts a btrfs";
  MountedPool pool;
  EXPECT_EQ(pool.run([](int directory) { return remove_subvolume(directory, "no").ok() ? 0 : 1; }),
            0);
}

}  // namespace
}  // namespace atl::linux
