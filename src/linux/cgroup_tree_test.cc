#include "linux/cgroup_tree.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"

namespace atl::linux {
namespace {

MountInfo v1(const char* where, const char* options) {
  return {.root = "/", .mount_point = where, .file_system = "cgroup", .super_options = options};
}
MountInfo v2(const char* where) {
  return {.root = "/", .mount_point = where, .file_system = "cgroup2", .super_options = "rw"};
}

TEST(CgroupTree, TakesControllersFromV1WhereV2HasNone) {
  CgroupTree tree = find_cgroups({v1("/c/memory", "rw,memory"), v1("/c/cpu", "rw,cpu,cpuacct"),
                                  v1("/c/pids", "rw,pids"), v2("/c/unified")},
                                 "hugetlb\n");
  EXPECT_TRUE(tree.check().ok());
  EXPECT_TRUE(tree.uses_v1());
  EXPECT_EQ(tree.v2, "/c/unified");
  EXPECT_EQ(tree.v1[0], "/c/memory");
  EXPECT_EQ(tree.v1[1], "/c/cpu");
}

TEST(CgroupTree, PrefersV2) {
  CgroupTree tree = find_cgroups({v2("/c")}, "cpuset cpu io memory hugetlb pids\n");
  EXPECT_TRUE(tree.check().ok());
  EXPECT_FALSE(tree.uses_v1());
}

TEST(CgroupTree, RefusesAHostThatCannotLimit) {
  EXPECT_FALSE(find_cgroups({v2("/c")}, "cpuset io memory pids\n").check().ok());
  EXPECT_FALSE(
      find_cgroups({v1("/c/memory", "rw,memory"), v1("/c/cpu", "rw,cpu"), v1("/c/pids", "rw,pids")},
                   "")
          .check()
          .ok());
}

TEST(CgroupTree, KillsAndRemovesANestedGroup) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  auto tree = read_cgroups();
  ASSERT_TRUE(tree.ok());
  std::string group = tree->v2 + "/atoll-unit-" + std::to_string(getpid());
  ASSERT_EQ(mkdir(group.c_str(), 0755), 0);
  ASSERT_EQ(mkdir((group + "/leaf").c_str(), 0755), 0);
  pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  ASSERT_TRUE(write_file_at(AT_FDCWD, group + "/leaf/cgroup.procs", std::to_string(child)).ok());
  EXPECT_TRUE(kill_group(group, 5000).ok());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_TRUE(remove_group(group).ok());
  EXPECT_NE(access(group.c_str(), F_OK), 0);
  EXPECT_TRUE(remove_group(group).ok()) << "absence is a success";
  EXPECT_TRUE(kill_group(group, 10).ok()) << "absence is a success";
}

TEST(CgroupTree, FreezesWhatRunsUntilItIsThawed) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  auto tree = read_cgroups();
  ASSERT_TRUE(tree.ok());
  std::string group = tree->v2 + "/atoll-unit-freeze-" + std::to_string(getpid());
  ASSERT_EQ(mkdir(group.c_str(), 0755), 0);
  ASSERT_TRUE(freeze_group(group, 1000).ok()) << "also with nothing in it";
  ASSERT_TRUE(thaw_group(group).ok());
  int pipes[2];
  ASSERT_EQ(pipe2(pipes, O_CLOEXEC | O_NONBLOCK), 0);
  pid_t child = fork();
  if (child == 0) {
    while (write(pipes[1], "x", 1) >= 0 || errno == EAGAIN) usleep(1000);
    _exit(0);
  }
  ASSERT_TRUE(write_file_at(AT_FDCWD, group + "/cgroup.procs", std::to_string(child)).ok());
  ASSERT_TRUE(freeze_group(group, 1000).ok());
  char text[4096];
  while (read(pipes[0], text, sizeof text) > 0) {
  }
  usleep(50'000);
  EXPECT_LT(read(pipes[0], text, sizeof text), 0) << "it writes although it is frozen";
  ASSERT_TRUE(thaw_group(group).ok());
  usleep(50'000);
  EXPECT_GT(read(pipes[0], text, sizeof text), 0) << "it does not go on";
  ASSERT_TRUE(freeze_group(group, 1000).ok());
  EXPECT_TRUE(kill_group(group, 5000).ok()) << "what is frozen can be killed";
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(remove_group(group).ok());
  close(pipes[0]);
  close(pipes[1]);
  EXPECT_FALSE(freeze_group(group, 10).ok());
}

TEST(CgroupTree, FindsTheGroupOfAControllerAmongOthersOfItsName) {
  std::string_view groups = "3:cpuset:/a\n2:cpu,cpuacct:/atoll/x\n1:memory:/m\n0::/run/0\n";
  EXPECT_EQ(v1_group_of(groups, Controller::kCpu), "/atoll/x");
  EXPECT_EQ(v1_group_of(groups, Controller::kMemory), "/m");
  EXPECT_EQ(v1_group_of(groups, Controller::kPids), "");
  EXPECT_EQ(v1_group_of("", Controller::kCpu), "");
}

}  // namespace
}  // namespace atl::linux
