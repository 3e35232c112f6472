// The leaves here are plain directories with the files that gVisor's groups have.
#include "agent/limit_watch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/file.h"

namespace atl::agent {
namespace {

using std::chrono::milliseconds;

class SentrysLeaves : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = testing::TempDir() + "leaves.XXXXXX";
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    path_ = path;
    parent_ = *open_file(path_, O_RDONLY | O_DIRECTORY);
    counter_ = Fd(memfd_create("counter", MFD_CLOEXEC));
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  Leaf make_leaf(uint32_t number, pid_t member, int threads) {
    std::string leaf = path_ + "/" + std::to_string(number);
    mkdir(leaf.c_str(), 0755);
    std::ofstream(leaf + "/cgroup.procs") << member << "\n";
    std::ofstream(leaf + "/pids.current") << threads << "\n";
    std::ofstream(leaf + "/pids.max") << "max\n";
    return Leaf(parent_.get(), number);
  }
  LimitWatch watch(uint64_t memory_bytes, uint32_t pids) {
    GuestLimits limits = {};
    limits.memory_bytes = memory_bytes;
    limits.pids = pids;
    std::ofstream(path_ + "/meminfo") << "MemTotal: 900 kB\nAnonPages:   300 kB\nShmem:  200 kB\n";
    return LimitWatch(limits, Fd(dup(counter_.get())), path_ + "/meminfo");
  }
  std::string counted() {
    char text[64] = {};
    EXPECT_GE(pread(counter_.get(), text, sizeof text - 1, 0), 0);
    return text;
  }

  std::string path_;
  Fd parent_, counter_;
  SteadyTime now_ = std::chrono::steady_clock::now();
};

TEST_F(SentrysLeaves, TheOneThatUsesMostIsNamedWhenAllUseTooMuch) {
  Leaf leaves[] = {make_leaf(3, getpid(), 1), make_leaf(4, 1 << 30, 1)};
  LimitWatch strict = watch(100 * 1024 - 1, 100);
  EXPECT_EQ(strict.look(leaves, now_), 3u);
  EXPECT_EQ(strict.look(leaves, now_ + milliseconds(1)), std::nullopt) << "not so soon again";
  EXPECT_EQ(strict.look(leaves, now_ + milliseconds(100)), 3u);
  EXPECT_EQ(watch(100 * 1024, 100).look(leaves, now_), std::nullopt);
}

TEST_F(SentrysLeaves, AsManyProcessesAsThereMayBeAreCounted) {
  Leaf leaves[] = {make_leaf(3, getpid(), 2), make_leaf(4, 1 << 30, 3)};
  EXPECT_EQ(watch(1ull << 40, 6).look(leaves, now_), std::nullopt);
  EXPECT_EQ(counted(), "");
  LimitWatch full = watch(1ull << 40, 5);
  (void)full.look(leaves, now_);
  EXPECT_EQ(counted(), "max 1\n");
  (void)full.look(leaves, now_ + milliseconds(100));
  EXPECT_EQ(counted(), "max 2\n");
}

TEST_F(SentrysLeaves, TheOneThatHasJustEndedWasOneOfThem) {
  Leaf leaves[] = {make_leaf(3, getpid(), 2), make_leaf(4, 1 << 30, 3)};
  watch(1ull << 40, 7).look_at_end(leaves);
  EXPECT_EQ(counted(), "");
  watch(1ull << 40, 6).look_at_end(leaves);
  EXPECT_EQ(counted(), "max 1\n");
}

TEST_F(SentrysLeaves, AreKilledWithoutAFileForThat) {
  pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  Leaf leaf = make_leaf(7, child, 1);
  EXPECT_EQ(leaf.remove(), Leaf::Removal::kPopulated);
  EXPECT_TRUE(leaf.kill().ok());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_EQ(*read_file(path_ + "/7/pids.max"), "0ax\n") << "no room for another";
  EXPECT_FALSE(Leaf(parent_.get(), 8).kill().ok());
}

TEST_F(SentrysLeaves, TellTheTimesOfTheirProcesses) {
  Leaf leaf = make_leaf(3, getpid(), 1);
  EXPECT_FALSE(leaf.times()) << "there is no count of all";
  auto used = [&leaf] { return leaf.live_times().user_us + leaf.live_times().system_us; };
  uint64_t before = used();
  auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (used() <= before && std::chrono::steady_clock::now() < patience) {
  }
  EXPECT_GT(used(), before);
}

}  // namespace
}  // namespace atl::agent
