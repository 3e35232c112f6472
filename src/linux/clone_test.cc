#include "linux/clone.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "linux/cgroup_tree.h"
#include "linux/pidfd.h"

namespace atl::linux {
namespace {

int exit_code_of(const Result<int>& status) {
  return status.ok() && WIFEXITED(*status) ? WEXITSTATUS(*status) : -1;
}

TEST(Clone, ChildIsHeldByItsPidfd) {
  auto outcome = clone_process({});
  ASSERT_TRUE(outcome.ok()) << outcome.error().message();
  if (outcome->in_child()) _exit(42);
  EXPECT_EQ(exit_code_of(wait_for_exit(outcome->pidfd.get())), 42);
  EXPECT_EQ(waitpid(outcome->pid, nullptr, 0), -1);
}

TEST(Clone, NamespaceFlagMakesTheChildProcessOne) {
  auto outcome = clone_process({.flags = CLONE_NEWPID});
  ASSERT_TRUE(outcome.ok()) << outcome.error().message();
  if (outcome->in_child()) _exit(getpid() == 1 ? 0 : 1);
  EXPECT_EQ(exit_code_of(wait_for_exit(outcome->pidfd.get())), 0);
}

TEST(Clone, ChildIsBornInTheGivenCgroup) {
  std::string name = "atoll-clone-test-" + std::to_string(getpid());
  auto tree = read_cgroups();
  ASSERT_TRUE(tree.ok());
  std::string path = tree->v2 + "/" + name;
  if (mkdir(path.c_str(), 0755) != 0) GTEST_SKIP() << "cannot make " << path;
  {
    auto group = open_file(path, O_RDONLY | O_DIRECTORY);
    ASSERT_TRUE(group.ok());
    auto outcome = clone_process({.cgroup = group->get()});
    ASSERT_TRUE(outcome.ok()) << outcome.error().message();
    if (outcome->in_child()) {
      auto text = read_file("/proc/self/cgroup");
      _exit(text.ok() && text->find("0::/" + name) != std::string::npos ? 0 : 1);
    }
    EXPECT_EQ(exit_code_of(wait_for_exit(outcome->pidfd.get())), 0);
  }
  EXPECT_EQ(rmdir(path.c_str()), 0);
}

TEST(Clone, BadCgroupIsAnError) {
  auto null = open_file("/dev/null", O_RDONLY);
  ASSERT_TRUE(null.ok());
  auto outcome = clone_process({.cgroup = null->get()});
  if (outcome.ok() && outcome->in_child()) _exit(0);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().system_errno(), EBADF);
}

}  // namespace
}  // namespace atl::linux
