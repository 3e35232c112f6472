#include "cli/doctor/cgroups.h"

#include <gtest/gtest.h>

namespace atl::cli {
namespace {

constexpr const char* kMixed =
    "30 24 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "31 24 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
    "32 24 0:28 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
    "33 24 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
constexpr const char* kPure = "33 24 0:29 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";

std::vector<linux::MountInfo> mounts_of(const std::string& text) {
  return linux::parse_mountinfo(text).value();
}

TEST(DoctorCgroups, DescribesTheLayout) {
  EXPECT_EQ(describe_layout(linux::find_cgroups(mounts_of(kMixed), "")),
            "mixed: v2 at /sys/fs/cgroup/unified, memory cpu pids in v1");
  EXPECT_EQ(describe_layout(linux::find_cgroups(mounts_of(kPure), "cpu memory pids")),
            "v2 at /sys/fs/cgroup");
  EXPECT_EQ(describe_layout(linux::find_cgroups({}, "")), "none");
}

TEST(DoctorCgroups, NamesTheSwitchWhereV1GroupsMakeStartsSlow) {
  auto mounts = mounts_of(kMixed);
  Finding off = judge_favordynmods(linux::find_cgroups(mounts, ""), mounts);
  EXPECT_EQ(off.state, FindingState::kMissing);
  EXPECT_EQ(off.remedy, "mount -o remount,favordynmods /sys/fs/cgroup/unified");

  mounts = mounts_of(std::string(kMixed) + "34 24 0:30 / /x rw - cgroup cgroup rw,favordynmods\n");
  EXPECT_EQ(judge_favordynmods(linux::find_cgroups(mounts, ""), mounts).found, "on");
}

TEST(DoctorCgroups, AsksForNoSwitchOnV2Alone) {
  auto mounts = mounts_of(kPure);
  Finding finding = judge_favordynmods(linux::find_cgroups(mounts, "cpu memory pids"), mounts);
  EXPECT_EQ(finding.state, FindingState::kOk);
  EXPECT_EQ(finding.remedy, "");
}

TEST(DoctorCgroups, DiskRateNeedsTheIoControllerInV2) {
  EXPECT_EQ(judge_io_controller("cpuset cpu io memory\n").state, FindingState::kOk);
  EXPECT_EQ(judge_io_controller("cpuset cpu rdma\n").state, FindingState::kMissing);
  EXPECT_EQ(judge_io_controller("").state, FindingState::kMissing);
}

}  // namespace
}  // namespace atl::cli
