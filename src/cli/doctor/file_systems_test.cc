#include "cli/doctor/file_systems.h"

#include <gtest/gtest.h>

namespace atl::cli {
namespace {

TEST(FileSystems, AreListedByTheirWholeName) {
  EXPECT_TRUE(lists_file_system("nodev\tproc\n\text4\n\terofs\n", "erofs"));
  EXPECT_FALSE(lists_file_system("nodev\tproc\n\text4\n", "erofs"));
  EXPECT_FALSE(lists_file_system("\terofs2\n", "erofs"));
}

TEST(FileSystems, ModulesAreFoundByFileNotByDependency) {
  EXPECT_TRUE(lists_module("kernel/fs/btrfs/btrfs.ko: kernel/lib/raid6_pq.ko\n", "btrfs"));
  EXPECT_TRUE(lists_module("kernel/fs/btrfs/btrfs.ko.xz:\n", "btrfs"));
  EXPECT_TRUE(lists_module("kernel/fs/ext4/ext4.ko\nkernel/fs/btrfs/btrfs.ko\n", "btrfs"));
  EXPECT_FALSE(lists_module("kernel/fs/x/x.ko: kernel/fs/btrfs/btrfs.ko\n", "btrfs"));
  EXPECT_FALSE(lists_module("", "btrfs"));
}

TEST(FileSystems, NewerKernelsHaveMore) {
  auto states = [](KernelVersion version) {
    std::vector<FindingState> all;
    for (const Finding& finding : judge_by_version(version)) all.push_back(finding.state);
    return all;
  };
  using enum FindingState;
  EXPECT_EQ(states({6, 1}), (std::vector{kMissing, kMissing}));
  EXPECT_EQ(states({6, 7}), (std::vector{kOk, kMissing}));
  EXPECT_EQ(states({6, 12}), (std::vector{kOk, kOk}));
}

}  // namespace
}  // namespace atl::cli
