#include "linux/mountinfo.h"

#include <gtest/gtest.h>

namespace atl::linux {
namespace {

TEST(Mountinfo, ReadsFieldsAroundAnyNumberOfOptionalOnes) {
  auto mounts = parse_mountinfo(
      "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
      "41 31 0:38 /sub /a\\040b rw shared:1 master:2 - cgroup2 cgroup2 rw,nsdelegate\n");
  ASSERT_TRUE(mounts.ok());
  ASSERT_EQ(mounts->size(), 2u);
  EXPECT_EQ((*mounts)[0].file_system, "cgroup");
  EXPECT_TRUE(has_option((*mounts)[0].super_options, "cpu"));
  EXPECT_FALSE(has_option((*mounts)[0].super_options, "cpuset"));
  EXPECT_EQ((*mounts)[1].mount_point, "/a b");
  EXPECT_EQ((*mounts)[1].root, "/sub");
  EXPECT_TRUE(has_option((*mounts)[1].super_options, "nsdelegate"));
}

TEST(Mountinfo, RefusesALineWithoutItsSecondHalf) {
  EXPECT_FALSE(parse_mountinfo("32 31 0:29 / /x rw,relatime\n").ok());
  EXPECT_FALSE(parse_mountinfo("32 31 0:29 / /x rw - cgroup\n").ok());
}

TEST(Mountinfo, FindsTheRootOfThisMachine) {
  auto mounts = read_mountinfo();
  ASSERT_TRUE(mounts.ok());
  bool found = false;
  for (const MountInfo& mount : *mounts) found |= mount.mount_point == "/";
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace atl::linux
