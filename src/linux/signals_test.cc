#include "linux/signals.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"

namespace atl::linux {
namespace {

std::string line_of(const std::string& status, const std::string& name) {
  size_t begin = status.find(name);
  return status.substr(begin, status.find('\n', begin) - begin);
}

TEST(Signals, ResetTakesBackWhatAParentIgnoredOrBlocked) {
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // Ignored by number: the C library refuses 32 and 33.
    struct {
      void (*handler)(int);
      unsigned long flags;
      void (*restorer)();
      unsigned long mask;
    } ignore = {SIG_IGN, 0, nullptr, 0};
    for (int number : {SIGPIPE, SIGHUP, 32, 33, 64})
      syscall(SYS_rt_sigaction, number, &ignore, nullptr, 8);
    unsigned long all = ~0ul;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, nullptr, 8);
    bool reset = reset_signals().ok();
    std::string status = read_file("/proc/self/status").value();
    bool clean = line_of(status, "SigIgn") == "SigIgn:\t0000000000000000" &&
                 line_of(status, "SigBlk") == "SigBlk:\t0000000000000000";
    _exit(reset && clean ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace atl::linux
