#include "linux/traced_filter.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/fd.h"
#include "linux/syscall_filter.h"

namespace atl::linux {
namespace {

const sock_filter kAllowAll[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};

// A process that has loaded `count` filters and waits.
class Filtered {
 public:
  explicit Filtered(int count) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
      for (int i = 0; i < count; ++i)
        if (!load_syscall_filter(kAllowAll).ok()) _exit(1);
      if (write(ready[1], "r", 1) != 1) _exit(1);
      while (true) pause();
    }
    close(ready[1]);
    char byte;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
  }
  ~Filtered() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  bool goes_on() const { return waitpid(pid_, nullptr, WNOHANG) == 0; }

 private:
  pid_t pid_;
};

TEST(TracedFilter, IsTheOneThatWasLoaded) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: only it may read filters";
  Filtered process(1);
  auto filter = read_filter_of(process.pid());
  ASSERT_TRUE(filter.ok()) << filter.error().message();
  EXPECT_EQ(*filter, std::string(reinterpret_cast<const char*>(kAllowAll), sizeof kAllowAll));
  EXPECT_TRUE(process.goes_on());
  EXPECT_TRUE(read_filter_of(process.pid()).ok()) << "it can be looked at again";
}

TEST(TracedFilter, NoneOrTwoAreRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: only it may read filters";
  for (int count : {0, 2}) {
    Filtered process(count);
    EXPECT_FALSE(read_filter_of(process.pid()).ok()) << count;
    EXPECT_TRUE(process.goes_on());
  }
}

}  // namespace
}  // namespace atl::linux
