// Calls that are taken away: refused where every host has them, done without where gVisor has not.
#include "linux/kernel_gaps.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "linux/open_resolved.h"
#include "linux/pidfd.h"
#include "linux/syscall_filter.h"

namespace atl::linux {
namespace {

bool take_away() {
  sock_filter program[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SYS_openat2},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_pidfd_open},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOSYS},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  return load_syscall_filter(program).ok();
}

enum class Works : int { kNeither = 0, kBoth = 3, kNotTried = 4 };

Works what_works(bool with_gaps) {
  pid_t child = fork();
  if (child == 0) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || !take_away())
      _exit(static_cast<int>(Works::kNotTried));
    if (with_gaps) expect_kernel_gaps();
    Fd opened = open_resolved(AT_FDCWD, "/proc/self/status",
                              {.flags = O_RDONLY, .resolve = RESOLVE_NO_MAGICLINKS});
    bool held = open_pidfd(getpid()).ok();
    _exit((opened ? 1 : 0) | (held ? 2 : 0));
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  return static_cast<Works>(WEXITSTATUS(status));
}

TEST(KernelGaps, AMissingCallIsAnErrorOnAHost) { EXPECT_EQ(what_works(false), Works::kNeither); }

TEST(KernelGaps, GvisorDoesWithoutIt) { EXPECT_EQ(what_works(true), Works::kBoth); }

}  // namespace
}  // namespace atl::linux
