// The clocks of a program, at chosen times. The leaf here is a plain directory.
#include "agent/program.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "agent/fixture_test.h"
#include "base/file.h"
#include "linux/clone.h"

namespace atl::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

class ProgramClocks : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = testing::TempDir() + "program.XXXXXX";
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    path_ = path;
    parent_ = *open_file(path_, O_RDONLY | O_DIRECTORY);
    ASSERT_EQ(mkdir((path_ + "/1").c_str(), 0755), 0);
    use_cpu(0);
    std::ofstream(path_ + "/1/cgroup.kill") << "";
  }
  void TearDown() override {
    if (child_) {
      kill(child_->pid, SIGKILL);
      waitpid(child_->pid, nullptr, 0);
    }
    std::filesystem::remove_all(path_);
  }

  // Starts a real process, whose processor time is what the leaf's file says.
  Program start(uint32_t timeout_ms, uint32_t cpu_time_ms) {
    Start start = shell("");
    start.timeout_ms = timeout_ms;
    start.cpu_time_ms = cpu_time_ms;
    Program program(Leaf(parent_.get(), 1), start, Counts());
    auto child = linux::clone_process({});
    ATOLL_CHECK(child.ok());
    if (child->in_child()) {
      pause();
      _exit(0);
    }
    child_.emplace(std::move(*child));
    program.launched(child_->pid, Fd(dup(child_->pidfd.get())));
    return program;
  }
  void use_cpu(uint64_t user_us) {
    std::ofstream(path_ + "/1/cpu.stat")
        << "usage_usec 0\nuser_usec " << user_us << "\nsystem_usec 0\n";
  }
  bool is_killed() { return *read_file(path_ + "/1/cgroup.kill") == "1"; }

  std::string path_;
  Fd parent_;
  std::optional<linux::CloneOutcome> child_;
};

TEST_F(ProgramClocks, TheLimitOfWallTimeIsPutOffByWhatItStoodStill) {
  SteadyTime before = steady_clock::now();
  Program program = start(700, 0);
  SteadyTime deadline = *program.deadline();
  EXPECT_GE(deadline, before + milliseconds(700));
  SteadyTime frozen = deadline - milliseconds(500);
  program.put_off(frozen, frozen + milliseconds(9000));
  EXPECT_EQ(*program.deadline(), deadline + milliseconds(9000));
  program.check_deadline(deadline + milliseconds(8999));
  EXPECT_FALSE(is_killed());
  program.check_deadline(deadline + milliseconds(9000));
  EXPECT_TRUE(is_killed());
}

TEST_F(ProgramClocks, OneThatWasStartedMeanwhileIsPutOffFromItsStart) {
  SteadyTime before = steady_clock::now();
  Program program = start(700, 0);
  SteadyTime started = *program.deadline() - milliseconds(700);
  program.put_off(before - milliseconds(9000), started + milliseconds(100));
  EXPECT_EQ(*program.deadline(), started + milliseconds(800));
}

TEST_F(ProgramClocks, NoLimitOfCpuTimeIsPassedBeforeTheNextCheck) {
  cpu_set_t cpus;
  ASSERT_EQ(sched_getaffinity(0, sizeof cpus, &cpus), 0);
  Program program = start(0, 300);
  for (uint64_t used_us : {0, 100'000, 250'000}) {
    use_cpu(used_us);
    SteadyTime check = *program.deadline();
    program.check_deadline(check);
    EXPECT_FALSE(is_killed());
    EXPECT_EQ(*program.deadline() - check,
              std::chrono::microseconds((300'000 - used_us) / CPU_COUNT(&cpus)));
  }
  use_cpu(300'000);
  program.check_deadline(*program.deadline());
  EXPECT_TRUE(is_killed());
}

}  // namespace
}  // namespace atl::agent
