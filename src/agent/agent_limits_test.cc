// Each limit of a sandbox or an exec at its edge: what ends, who is said to have ended it, and
// which limits are said to have been hit.
#include <signal.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "agent/fixture_test.h"
#include "agent/layer_probe.h"
#include "base/file.h"

namespace atl::agent {
namespace {

constexpr uint64_t kMiB = 1 << 20;

uint16_t bits(std::initializer_list<LimitBit> limits) {
  uint16_t all = 0;
  for (LimitBit limit : limits) all = static_cast<uint16_t>(all | static_cast<uint16_t>(limit));
  return all;
}

// Holds this many bytes for a moment.
std::string holding(uint64_t bytes) {
  return "head -c " + std::to_string(bytes) + " /dev/zero | tail -c " + std::to_string(bytes) +
         " | wc -c";
}

constexpr const char* kHog = "exec dd if=/dev/zero of=/dev/null bs=300M count=1 2>&1 >/dev/null";

class AgentLimits : public testing::Test {
 protected:
  explicit AgentLimits(TestLimits limits = {}) : sandbox_(limiting_starter(), limits) {}
  void SetUp() override {
    if (!sandbox_.problem().empty()) GTEST_SKIP() << sandbox_.problem();
    daemon_.connect();
  }
  void TearDown() override {
    if (!sandbox_.problem().empty()) return;
    EXPECT_TRUE(sandbox_.agent_is_alive());
    EXPECT_EQ(daemon_.contradiction(), "");
    EXPECT_TRUE(leaves_vanish());
  }
  Exit run(const Start& start) {
    uint32_t exec = next_exec_++;
    daemon_.start(exec, start);
    return ended(exec);
  }
  Exit ended(uint32_t exec) {
    const Record& done = daemon_.finish(exec);
    EXPECT_TRUE(done.exit) << (done.failed ? done.failed->operation : "nothing");
    return done.exit.value_or(Exit{});
  }
  uint32_t start_and_wait_until_up(const Start& start) {
    uint32_t exec = next_exec_++;
    daemon_.start(exec, start);
    EXPECT_TRUE(daemon_.run_until([&] { return daemon_.record(exec).out == "up\n"; }));
    return exec;
  }
  bool leaves_vanish() {
    return daemon_.run_until([this] { return sandbox_.leaves().empty(); });
  }

  TestSandbox sandbox_;
  TestDaemon daemon_{sandbox_};
  uint32_t next_exec_ = 1;
};

class AgentMemoryLimit : public AgentLimits {
 protected:
  explicit AgentMemoryLimit(OnOom on_oom = OnOom::kEndExec)
      : AgentLimits({.memory_bytes = 64 * kMiB, .on_oom = on_oom}) {}
};

TEST_F(AgentMemoryLimit, BelowItNothingIsHit) {
  Exit exit = run(shell(holding(40 * kMiB)));
  EXPECT_EQ(exit.status, 0);
  EXPECT_EQ(exit.limits_hit, 0);
  EXPECT_GE(exit.peak_memory_bytes, 40 * kMiB);
  EXPECT_LE(exit.peak_memory_bytes, 64 * kMiB);
}

TEST_F(AgentMemoryLimit, AMainProcessBeyondItEndsByMemoryWithTheRestOfItsExec) {
  Exit exit = run(shell(std::string("setsid sleep 60 & ") + kHog));
  EXPECT_EQ(exit.ending, Ending::kSignaled);
  EXPECT_EQ(exit.status, SIGKILL);
  EXPECT_EQ(exit.cause, Cause::kMemory);
  EXPECT_EQ(exit.limits_hit, bits({LimitBit::kMemory}));
  EXPECT_TRUE(leaves_vanish()) << "the background child is gone too";
}

TEST_F(AgentMemoryLimit, AChildBeyondItIsToldAndTheMainProcessGoesOn) {
  Exit exit = run(shell("(" + std::string(kHog) + "); echo $?; exit 0"));
  EXPECT_EQ(daemon_.record(1).out, "137\n");
  EXPECT_EQ(exit.status, 0);
  EXPECT_EQ(exit.cause, Cause::kProgram);
  EXPECT_EQ(exit.limits_hit, bits({LimitBit::kMemory}));
}

TEST_F(AgentMemoryLimit, AKillByHandBesideOrAfterItIsTheProgramsOwn) {
  uint32_t other = start_and_wait_until_up(shell("echo up; exec sleep 60"));
  EXPECT_EQ(run(shell(kHog)).cause, Cause::kMemory);
  daemon_.start(50, shell("kill -9 " + std::to_string(*daemon_.record(other).pid)));
  EXPECT_EQ(ended(50).status, 0);
  EXPECT_EQ(ended(other).cause, Cause::kProgram) << "the kill by the kernel was another's";
  Exit after = run(shell("kill -9 $$"));
  EXPECT_EQ(after.cause, Cause::kProgram);
  EXPECT_EQ(after.limits_hit, 0);
}

TEST_F(AgentMemoryLimit, AKillByTheClientStaysTheClients) {
  uint32_t exec = start_and_wait_until_up(shell("(" + std::string(kHog) + "); echo up; sleep 60"));
  daemon_.send_raw(encode_signal(exec, SIGKILL));
  Exit exit = ended(exec);
  EXPECT_EQ(exit.cause, Cause::kClient);
  EXPECT_EQ(exit.limits_hit, bits({LimitBit::kMemory}));
}

TEST_F(AgentMemoryLimit, OtherExecsGoOn) {
  uint32_t other = start_and_wait_until_up(shell("echo up; sleep 1; exit 7"));
  EXPECT_EQ(run(shell(kHog)).cause, Cause::kMemory);
  EXPECT_EQ(ended(other).status, 7);
}

class AgentMemoryLimitEndsSandbox : public AgentMemoryLimit {
 protected:
  AgentMemoryLimitEndsSandbox() : AgentMemoryLimit(OnOom::kEndSandbox) {}
};

TEST_F(AgentMemoryLimitEndsSandbox, EverythingThatRunsEndsByMemory) {
  uint32_t other = start_and_wait_until_up(shell("echo up; sleep 60"));
  EXPECT_EQ(run(shell("setsid sleep 60 &")).status, 0);
  EXPECT_EQ(sandbox_.leaves().size(), 2u) << "one runs, one left a child";
  Exit hog = run(shell("(" + std::string(kHog) + "); sleep 60"));
  for (const Exit& exit : {hog, ended(other)}) {
    EXPECT_EQ(exit.status, SIGKILL);
    EXPECT_EQ(exit.cause, Cause::kMemory);
    EXPECT_EQ(exit.limits_hit, bits({LimitBit::kMemory}));
  }
  EXPECT_TRUE(leaves_vanish());
  EXPECT_EQ(run(shell("exit 3")).status, 3) << "the sandbox itself goes on";
}

TEST_F(AgentLimits, CpuTimeCountsEveryProcessAndEndsThemAll) {
  Start start = shell("(while :; do :; done) & setsid sh -c 'while :; do :; done' & wait");
  start.cpu_time_ms = 300;
  Exit exit = run(start);
  EXPECT_EQ(exit.status, SIGKILL);
  EXPECT_EQ(exit.cause, Cause::kCpuTime);
  EXPECT_EQ(exit.limits_hit, bits({LimitBit::kCpuTime}));
  EXPECT_GE(exit.user_us + exit.system_us, 300'000u);
}

TEST_F(AgentLimits, CpuTimeIsNotWallTime) {
  Start start = shell("sleep 2; exit 4");
  start.cpu_time_ms = 1500;
  Exit exit = run(start);
  EXPECT_EQ(exit.status, 4);
  EXPECT_EQ(exit.limits_hit, 0);
  EXPECT_LT(exit.user_us + exit.system_us, 1'500'000u);
}

TEST_F(AgentLimits, WallTimeEndsAProgramThatStopsItself) {
  Start start = shell("kill -STOP $$; echo never");
  start.timeout_ms = 300;
  Exit exit = run(start);
  EXPECT_EQ(exit.cause, Cause::kWallTime);
  EXPECT_EQ(exit.limits_hit, bits({LimitBit::kWallTime}));
}

TEST_F(AgentLimits, WallTimeEndsWhatForkedTwice) {
  Start start = shell("trap '' TERM; (setsid sleep 60 & sleep 60 &) ; sleep 60");
  start.timeout_ms = 300;
  EXPECT_EQ(run(start).cause, Cause::kWallTime);
  EXPECT_TRUE(leaves_vanish());
}

TEST_F(AgentLimits, OutputIsCutAndSaidToBe) {
  Start start = shell("head -c 1000 /dev/zero");
  start.output_limit_bytes = 1000;
  EXPECT_EQ(run(start).limits_hit, 0) << "exactly the limit";
  start.output_limit_bytes = 999;
  Exit exit = run(start);
  EXPECT_EQ(exit.status, 0);
  EXPECT_EQ(exit.cause, Cause::kProgram);
  EXPECT_EQ(exit.limits_hit, bits({LimitBit::kOutput}));
  EXPECT_EQ(exit.stdout_cut, 1u);
}

TEST_F(AgentLimits, OutputBeyondItsLimitEndsTheExecIfAsked) {
  Start start = shell("yes & exec yes >&2");
  start.output_limit_bytes = 1000;
  start.on_output_limit = OnOutputLimit::kKill;
  Exit exit = run(start);
  EXPECT_EQ(exit.cause, Cause::kOutput);
  EXPECT_EQ(exit.limits_hit, bits({LimitBit::kOutput}));
  EXPECT_EQ(std::max(daemon_.record(1).out.size(), daemon_.record(1).err.size()), 1000u)
      << "what is within the limit is kept";
  EXPECT_TRUE(leaves_vanish());
  start.arguments = shell("head -c 1000 /dev/zero").arguments;
  exit = run(start);
  EXPECT_EQ(exit.cause, Cause::kProgram) << "exactly the limit";
  start.arguments = shell("head -c 1001 /dev/zero").arguments;
  exit = run(start);
  EXPECT_EQ(exit.cause, Cause::kOutput) << "also if the program was faster than its reader";
}

TEST_F(AgentLimits, OpenFilesAreExactlyWhatWasAskedAndNeverMore) {
  Start start = shell("ulimit -Sn; ulimit -Hn");
  EXPECT_EQ(run(start).status, 0);
  std::string sandboxes = std::to_string(kOpenFiles);
  EXPECT_EQ(daemon_.record(1).out, sandboxes + "\n" + sandboxes + "\n");
  start.open_files = 20;
  EXPECT_EQ(run(start).status, 0);
  EXPECT_EQ(daemon_.record(2).out, "20\n20\n");
  start.open_files = kOpenFiles + 1;
  EXPECT_EQ(run(start).status, 0);
  EXPECT_EQ(daemon_.record(3).out, sandboxes + "\n" + sandboxes + "\n");
}

TEST_F(AgentLimits, BytesReadAndWrittenAreTheExecs) {
  std::string file = "/tmp/atoll-agent-bytes-" + std::to_string(getpid());
  Exit exit = run(shell("head -c 3000000 /dev/zero >" + file + "; rm " + file));
  EXPECT_EQ(exit.status, 0);
  auto own = read_file("/proc/self/io");
  if (!own.ok()) GTEST_SKIP() << "this kernel does not count the bytes of a process";
  EXPECT_GE(exit.written_bytes, 2'900'000u);
  EXPECT_LE(exit.written_bytes, 4'000'000u);
}

class AgentPidsLimit : public AgentLimits {
 protected:
  static constexpr uint32_t kPids = 12;
  AgentPidsLimit() : AgentLimits({.pids = kPids}) {}
};

TEST_F(AgentPidsLimit, ExactlySoManyProcessesAndThenItIsSaid) {
  // The shell and, where there is one, the spawner are among them.
  uint32_t room = kPids - (limiting_starter() == Starter::kSpawner ? 2 : 1);
  auto forks = [](uint32_t count) {
    return shell("i=0; while [ $i -lt " + std::to_string(count) +
                 " ]; do sleep 60 & all=\"$all $!\" i=$((i+1)); done; kill $all; wait");
  };
  Exit exit = run(forks(room));
  EXPECT_EQ(exit.status, 0);
  EXPECT_EQ(exit.limits_hit, 0);
  ASSERT_TRUE(leaves_vanish());
  exit = run(forks(room + 1));
  EXPECT_NE(exit.status, 0);
  EXPECT_EQ(exit.limits_hit, bits({LimitBit::kPids}));
  run(shell("kill -KILL -1"));
  ASSERT_TRUE(leaves_vanish());
  EXPECT_EQ(run(shell("exit 1")).limits_hit, 0);
}

TEST_F(AgentPidsLimit, AStartThatFindsNoRoomSaysSo) {
  // Children that outlive the exec, as many as the sandbox may have, and one in place of the shell.
  Exit exit = run(shell("i=0; while [ $i -lt 20 ]; do sleep 60 >&- 2>&- & i=$((i+1)); done"));
  EXPECT_EQ(exit.limits_hit, bits({LimitBit::kPids}));
  uint32_t last = start_and_wait_until_up(shell("echo up; exec sleep 60"));
  daemon_.start(50, shell("exit 0"));
  ASSERT_TRUE(daemon_.run_until([&] { return daemon_.record(50).ended(); }));
  ASSERT_TRUE(daemon_.record(50).failed);
  EXPECT_EQ(daemon_.record(50).failed->operation, kNoRoomForProcesses);
  daemon_.send_raw(encode_signal(last, SIGKILL));
  EXPECT_EQ(ended(last).cause, Cause::kClient);
  run(shell("kill -KILL -1"));
}

class AgentDiskLimit : public AgentLimits {
 protected:
  AgentDiskLimit() : AgentLimits({.root_bytes = 4 * kMiB}) {}
};

TEST_F(AgentDiskLimit, AFullLayerIsSaidAfterABadEndOrMuchWriting) {
  EXPECT_EQ(run(shell("exit 1")).limits_hit, 0) << "there is room";
  Exit exit = run(shell("head -c 9000000 /dev/zero >/tmp/big"));
  EXPECT_NE(exit.status, 0);
  EXPECT_EQ(exit.limits_hit, bits({LimitBit::kDisk}));
  EXPECT_EQ(run(shell("exit 1")).limits_hit, bits({LimitBit::kDisk})) << "still full";
  EXPECT_EQ(run(shell("exit 0")).limits_hit, 0) << "it did not mind";
  EXPECT_EQ(run(shell("rm /tmp/big; exit 1")).limits_hit, 0);
}

TEST_F(AgentDiskLimit, ManyBadEndsAtOnceAreAllAnswered) {
  for (uint32_t exec = 1; exec <= 40; ++exec) daemon_.start(exec, shell("exit 9"));
  for (uint32_t exec = 1; exec <= 40; ++exec) {
    Exit exit = ended(exec);
    EXPECT_EQ(exit.status, 9);
    EXPECT_EQ(exit.limits_hit, 0);
  }
}

}  // namespace
}  // namespace atl::agent
