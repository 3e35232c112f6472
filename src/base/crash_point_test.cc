#include "base/crash_point.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

namespace atl {
namespace {

class CrashPoint : public testing::Test {
 protected:
  CrashPoint() {
    char name[] = "/tmp/atoll-crash-XXXXXX";
    run_ = mkdtemp(name);
    mkdir((run_ + "/crash").c_str(), 0755);
  }
  ~CrashPoint() override { std::filesystem::remove_all(run_); }

  std::string file(const std::string& name) const { return run_ + "/crash/" + name; }
  void arm(const std::string& name) const { close(creat(file(name).c_str(), 0644)); }

  // How a child ends that does this.
  template <typename Work>
  static int status_of(Work work) {
    pid_t pid = fork();
    if (pid == 0) {
      work();
      _exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return status;
  }

  std::string run_;
};

TEST_F(CrashPoint, KillsOnceWhereItIsArmed) {
  arm("atolld.here");
  auto pass = [&] {
    watch_crash_directory(run_, "atolld");
    crash_point("there");
    crash_point("here");
  };
  int status = status_of(pass);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_FALSE(std::filesystem::exists(file("atolld.here")));
  EXPECT_EQ(status_of(pass), 0);
}

TEST_F(CrashPoint, IsNothingWithoutTheDirectoryOrForAnotherProgram) {
  arm("atoll-warden.here");
  EXPECT_EQ(status_of([&] {
              watch_crash_directory(run_ + "/none", "atoll-warden");
              crash_point("here");
            }),
            0);
  EXPECT_EQ(status_of([&] {
              watch_crash_directory(run_, "atolld");
              crash_point("here");
            }),
            0);
  EXPECT_TRUE(std::filesystem::exists(file("atoll-warden.here")));
}

TEST_F(CrashPoint, IsHandedToAProgramThatSeesNoDirectory) {
  arm("atoll-agent.hello");
  int status = status_of([&] {
    watch_crash_directory(run_, "atoll-warden");
    std::string name = take_armed_point("atoll-agent");
    if (name != "hello" || !take_armed_point("atoll-agent").empty()) _exit(1);
    arm_crash_point(name);
    crash_point("welcome");
    crash_point("hello");
  });
  EXPECT_TRUE(WIFSIGNALED(status));
}

}  // namespace
}  // namespace atl
