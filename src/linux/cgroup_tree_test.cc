#include "linux/cgroup_tree.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include <gtest/gtest.h>

#include "base/eventually.h"
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
  EXPECT_TRUE(kill_group(group, test_timeout_ms()).ok());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_TRUE(remove_group(group).ok());
  EXPECT_NE(access(group.c_str(), F_OK), 0);
  EXPECT_TRUE(remove_group(group).ok()) << "absence is a success";
  EXPECT_TRUE(kill_group(group, 10).ok()) << "absence is a success";
}

// As two services do that start and stop on one host: the parent is common to both.
TEST(CgroupTree, MakesANestedGroupWhileOthersRemoveItsParent) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  auto tree = read_cgroups();
  ASSERT_TRUE(tree.ok());
  std::string parent = tree->v2 + "/atoll-unit-nested-" + std::to_string(getpid());
  std::jthread other([&parent](std::stop_token stop) {
    while (!stop.stop_requested()) EXPECT_TRUE(remove_empty_group(parent).ok());
  });
  for (int i = 0; i < 2000; ++i) {
    auto made = make_nested_group(parent, "mine");
    ASSERT_TRUE(made.ok()) << made.error().message();
    ASSERT_EQ(rmdir((parent + "/mine").c_str()), 0);
  }
  other.request_stop();
  other.join();
  EXPECT_TRUE(remove_group(parent).ok());
}

// A process in a group of its own that writes to a pipe without end.
class EndlessWriter {
 public:
  explicit EndlessWriter(const std::string& group) : group_(group) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    output_ = Fd(ends[0]);
    Fd input(ends[1]);
    pid_ = fork();
    if (pid_ == 0) {
      while (write(input.get(), "x", 1) >= 0 || errno == EAGAIN) usleep(1000);
      _exit(0);
    }
    EXPECT_TRUE(write_file_at(AT_FDCWD, group_ + "/cgroup.procs", std::to_string(pid_)).ok());
  }
  ~EndlessWriter() { EXPECT_EQ(waitpid(pid_, nullptr, 0), pid_); }
  EndlessWriter(const EndlessWriter&) = delete;
  EndlessWriter& operator=(const EndlessWriter&) = delete;

  bool writes() const {
    pollfd readable = {.fd = output_.get(), .events = POLLIN, .revents = 0};
    return poll(&readable, 1, test_timeout_ms()) == 1;
  }
  void take_all() const {
    char bytes[4096];
    while (read(output_.get(), bytes, sizeof bytes) > 0) continue;
  }
  bool has_written() const {
    pollfd readable = {.fd = output_.get(), .events = POLLIN, .revents = 0};
    return poll(&readable, 1, 0) == 1;
  }
  bool is_frozen() const {
    auto events = read_file(group_ + "/cgroup.events");
    return events.ok() && events->find("frozen 1\n") != std::string::npos;
  }

 private:
  std::string group_;
  Fd output_;
  pid_t pid_ = -1;
};

TEST(CgroupTree, FreezesWhatRunsUntilItIsThawed) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  auto tree = read_cgroups();
  ASSERT_TRUE(tree.ok());
  std::string group = tree->v2 + "/atoll-unit-freeze-" + std::to_string(getpid());
  ASSERT_EQ(mkdir(group.c_str(), 0755), 0);
  ASSERT_TRUE(freeze_group(group, test_timeout_ms()).ok()) << "also with nothing in it";
  ASSERT_TRUE(thaw_group(group).ok());
  {
    EndlessWriter writer(group);
    EXPECT_TRUE(writer.writes());
    ASSERT_TRUE(freeze_group(group, test_timeout_ms()).ok());
    EXPECT_TRUE(writer.is_frozen());
    writer.take_all();
    usleep(50'000);
    EXPECT_FALSE(writer.has_written()) << "it writes although it is frozen";
    ASSERT_TRUE(thaw_group(group).ok());
    EXPECT_TRUE(writer.writes()) << "it does not go on";
    ASSERT_TRUE(freeze_group(group, test_timeout_ms()).ok());
    EXPECT_TRUE(kill_group(group, test_timeout_ms()).ok()) << "what is frozen can be killed";
  }
  EXPECT_TRUE(remove_group(group).ok());
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
