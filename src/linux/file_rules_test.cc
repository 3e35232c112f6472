#include "linux/file_rules.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace atl::linux {
namespace {

constexpr uint64_t kReadFile = 1 << 2;

TEST(FileRules, RightsGrowWithTheAbi) {
  EXPECT_EQ(file_rights(0), 0u);
  EXPECT_EQ(file_rights(1), 0x1fffu);
  EXPECT_EQ(file_rights(2), 0x3fffu);
  EXPECT_EQ(file_rights(3), 0x7fffu);
  EXPECT_EQ(file_rights(4), 0x7fffu);
  EXPECT_EQ(file_rights(5), 0xffffu);
  EXPECT_EQ(file_rights(100), 0xffffu) << "a later one has rights that we do not know";
}

TEST(FileRules, ForbidWhatIsNotAllowedBeneath) {
  if (!*landlock_abi()) GTEST_SKIP() << "this kernel has no Landlock";
  pid_t child = fork();
  if (child == 0) {
    auto rules = make_file_rules(kReadFile);
    Fd directory(open("/etc", O_PATH | O_CLOEXEC));
    bool made = rules.ok() && allow_beneath(rules->get(), directory.get(), kReadFile).ok();
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    bool taken = made && take_file_rules(rules->get()).ok();
    bool allowed = open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0;
    bool refused = open("/proc/self/status", O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES;
    _exit(taken && allowed && refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace atl::linux
