#include "linux/pidfd.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "linux/clone.h"

namespace atl::linux {
namespace {

TEST(Pidfd, SignalEndsTheProcessAndTheStatusNamesIt) {
  auto child = clone_process({});
  ASSERT_TRUE(child.ok());
  if (child->in_child()) {
    pause();
    _exit(0);
  }
  auto pidfd = open_pidfd(child->pid);
  ASSERT_TRUE(pidfd.ok());
  ASSERT_TRUE(send_signal(pidfd->get(), SIGTERM).ok());
  auto status = wait_for_exit(pidfd->get());
  ASSERT_TRUE(status.ok());
  EXPECT_TRUE(WIFSIGNALED(*status));
  EXPECT_EQ(WTERMSIG(*status), SIGTERM);
}

TEST(Pidfd, SignallingAProcessThatEndedIsRefused) {
  auto child = clone_process({});
  ASSERT_TRUE(child.ok());
  if (child->in_child()) _exit(0);
  ASSERT_TRUE(wait_for_exit(child->pidfd.get()).ok());
  auto sent = send_signal(child->pidfd.get(), SIGTERM);
  ASSERT_FALSE(sent.ok());
  EXPECT_EQ(sent.error().system_errno(), ESRCH);
}

}  // namespace
}  // namespace atl::linux
