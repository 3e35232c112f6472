// What programs see and how their ends are reported, with the real agent as process 1.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include <gtest/gtest.h>

#include "agent/fixture_test.h"
#include "base/file.h"

namespace atl::agent {
namespace {

class Agent : public testing::TestWithParam<Starter> {
 protected:
  void SetUp() override {
    if (!sandbox_.problem().empty()) GTEST_SKIP() << sandbox_.problem();
    daemon_.connect();
  }
  void TearDown() override {
    if (!sandbox_.problem().empty()) return;
    EXPECT_TRUE(sandbox_.agent_is_alive());
    EXPECT_EQ(daemon_.contradiction(), "");
  }
  Record run(const Start& start) {
    uint32_t exec = next_exec_++;
    daemon_.start(exec, start);
    return daemon_.finish(exec);
  }
  bool leaves_vanish() {
    return daemon_.run_until([this] { return sandbox_.leaves().empty(); });
  }

  TestSandbox sandbox_{GetParam()};
  TestDaemon daemon_{sandbox_};
  uint32_t next_exec_ = 1;
};

INSTANTIATE_TEST_SUITE_P(StartedBy, Agent, testing::Values(Starter::kAgent, Starter::kSpawner),
                         [](const auto& starter) {
                           return starter.param == Starter::kAgent ? "Agent" : "Spawner";
                         });

TEST_P(Agent, ReportsExitCodeAndKeepsStreamsApart) {
  Record done = run(shell("echo out; echo err >&2; exit 3"));
  ASSERT_TRUE(done.exit);
  EXPECT_EQ(done.exit->ending, Ending::kExited);
  EXPECT_EQ(done.exit->status, 3);
  EXPECT_EQ(done.exit->cause, Cause::kProgram);
  EXPECT_EQ(done.out, "out\n");
  EXPECT_EQ(done.err, "err\n");
  EXPECT_EQ(done.exit->stdout_bytes, 4u);
  EXPECT_EQ(done.exit->stderr_bytes, 4u);
  EXPECT_EQ(done.started_frames, 1);
  EXPECT_TRUE(leaves_vanish());
}

TEST_P(Agent, GivesArgumentsEnvironmentAndDirectory) {
  Start start = shell("printf '%s|%s|' \"$0\" \"$1\"; pwd; env | grep -c .; echo $NAME");
  start.arguments.insert(start.arguments.end(), {"zero", "a b"});
  start.environment = {"NAME=value", "PATH=/usr/bin:/bin"};
  start.directory = "/usr";
  Record done = run(start);
  // NAME and PATH are ours, HOME, USER, LOGNAME and SHELL the user's; dash adds PWD.
  EXPECT_EQ(done.out, "zero|a b|/usr\n7\nvalue\n");
}

TEST_P(Agent, LooksUpTheProgramInTheGivenPath) {
  Start start = shell("");
  start.arguments = {"true"};
  start.environment = {"PATH=/nonexistent:/usr/bin:/bin"};
  EXPECT_EQ(run(start).exit->status, 0);
  start.environment = {};
  EXPECT_EQ(run(start).exit->status, 0) << "without PATH the default one is searched";
  start.environment = {"PATH=/nonexistent"};
  EXPECT_EQ(run(start).exit->status, 127);
}

TEST_P(Agent, UserHasNoCapabilityAtAll) {
  Record done = run(shell("id -u; id -g; id -G; grep -E '^(Cap|NoNewPrivs)' /proc/self/status"));
  EXPECT_EQ(done.out,
            "1000\n1000\n1000\n"
            "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
            "CapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\n");
}

TEST_P(Agent, RootHasExactlyNineCapabilities) {
  Start start = shell("id -u; id -g; id -G; grep -E '^(Cap|NoNewPrivs)' /proc/self/status");
  start.user = "root";
  // CHOWN 0, DAC_OVERRIDE 1, FOWNER 3, FSETID 4, KILL 5, SETGID 6, SETUID 7, NET_BIND_SERVICE 10,
  // SYS_CHROOT 18.
  EXPECT_EQ(run(start).out,
            "0\n0\n0\n"
            "CapInh:\t0000000000000000\nCapPrm:\t00000000000404fb\nCapEff:\t00000000000404fb\n"
            "CapBnd:\t00000000000404fb\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\n");
}

TEST_P(Agent, ProgramStartsCleanSignalsDescriptorsAndLimits) {
  Record done = run(
      shell("cat /proc/self/status | grep -E '^Sig(Blk|Ign|Cgt)'; umask; ulimit -Sc; ulimit -Hc; "
            "cat | wc -c; ls /proc/self/fd | tr '\\n' ' '"));
  // wc reads an empty stdin; descriptor 3 is the directory that ls itself opened.
  EXPECT_EQ(done.out,
            "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\nSigCgt:\t0000000000000000\n"
            "0022\n0\n0\n0\n0 1 2 3 ");
  EXPECT_EQ(run(shell("grep 'core file' /proc/self/limits | tr -s ' '")).out,
            "Max core file size 1 1 bytes \n");
  EXPECT_EQ(run(shell("ulimit -n")).out, std::to_string(kOpenFiles) + "\n");
}

TEST_P(Agent, MissingProgramIsTheProgramsFailure) {
  Start start = shell("");
  start.arguments = {"no-such-program"};
  Record done = run(start);
  ASSERT_TRUE(done.exit);
  EXPECT_EQ(done.exit->status, 127);
  EXPECT_EQ(done.err, "atoll: exec no-such-program: No such file or directory\n");
  EXPECT_EQ(done.out, "");
}

TEST_P(Agent, ProgramThatMayNotBeExecutedGives126) {
  Start start = shell("");
  start.arguments = {"/etc/passwd"};
  Record done = run(start);
  ASSERT_TRUE(done.exit);
  EXPECT_EQ(done.exit->status, 126);
  EXPECT_EQ(done.err, "atoll: exec /etc/passwd: Permission denied\n");
}

TEST_P(Agent, BadDirectoryIsTheProgramsFailure) {
  Start start = shell("echo never");
  start.directory = "/no/such/place";
  Record done = run(start);
  ASSERT_TRUE(done.exit);
  EXPECT_EQ(done.exit->status, 127);
  EXPECT_EQ(done.err, "atoll: chdir /no/such/place: No such file or directory\n");
  start.directory = "/root";
  EXPECT_EQ(run(start).exit->status, 126) << "entered with the user's rights, not the agent's";
}

TEST_P(Agent, OwnSignalIsTheProgramsEnd) {
  Record done = run(shell("kill -SEGV $$"));
  ASSERT_TRUE(done.exit);
  EXPECT_EQ(done.exit->ending, Ending::kSignaled);
  EXPECT_EQ(done.exit->status, SIGSEGV);
  EXPECT_EQ(done.exit->cause, Cause::kProgram);
}

TEST_P(Agent, SignalFromTheDaemonIsTheClientsDoing) {
  daemon_.start(1, shell("echo up; exec sleep 60"));
  ASSERT_TRUE(daemon_.run_until([&] { return daemon_.record(1).out == "up\n"; }));
  daemon_.send_raw(encode_signal(1, SIGTERM));
  const Record& done = daemon_.finish(1);
  ASSERT_TRUE(done.exit);
  EXPECT_EQ(done.exit->status, SIGTERM);
  EXPECT_EQ(done.exit->cause, Cause::kClient);
}

TEST_P(Agent, SignalThatTheProgramHandlesIsNotItsEnd) {
  daemon_.start(1, shell("trap 'echo caught; exit 5' TERM; echo up; while :; do sleep 0.05; done"));
  ASSERT_TRUE(daemon_.run_until([&] { return daemon_.record(1).out == "up\n"; }));
  daemon_.send_raw(encode_signal(1, SIGTERM));
  const Record& done = daemon_.finish(1);
  ASSERT_TRUE(done.exit);
  EXPECT_EQ(done.out, "up\ncaught\n");
  EXPECT_EQ(done.exit->status, 5);
  EXPECT_EQ(done.exit->cause, Cause::kProgram);
}

TEST_P(Agent, KillReachesEveryProcessOfTheExec) {
  daemon_.start(1, shell("setsid sleep 60 & sleep 60 & echo up; wait"));
  ASSERT_TRUE(daemon_.run_until([&] { return daemon_.record(1).out == "up\n"; }));
  daemon_.send_raw(encode_signal(1, SIGKILL));
  const Record& done = daemon_.finish(1);
  ASSERT_TRUE(done.exit);
  EXPECT_EQ(done.exit->status, SIGKILL);
  EXPECT_EQ(done.exit->cause, Cause::kClient);
  EXPECT_TRUE(leaves_vanish()) << "a leaf goes only when its last process has gone";
}

TEST_P(Agent, WallTimeEndsTheWholeExec) {
  Start start = shell("trap '' TERM; sleep 60 & echo up; sleep 60");
  start.timeout_ms = 300;
  Stopwatch stopwatch;
  Record done = run(start);
  // On a busy host the program needs more time to print.
  while (done.out.empty() && std::chrono::milliseconds(start.timeout_ms) < test_timeout()) {
    start.timeout_ms *= 2;
    stopwatch = Stopwatch();
    done = run(start);
  }
  ASSERT_TRUE(done.exit);
  EXPECT_EQ(done.out, "up\n") << "partial output survives";
  EXPECT_EQ(done.exit->ending, Ending::kSignaled);
  EXPECT_EQ(done.exit->status, SIGKILL);
  EXPECT_EQ(done.exit->cause, Cause::kWallTime);
  EXPECT_GE(done.exit->start_us + done.exit->wall_us, start.timeout_ms * 1000u);
  EXPECT_LE(done.exit->wall_us, stopwatch.elapsed_us());
  EXPECT_TRUE(leaves_vanish());
}

TEST_P(Agent, MeasuresTimeAndMemory) {
  Stopwatch stopwatch;
  Record done = run(shell("sleep 0.1; head -c 30000000 /dev/zero | tail -c 20000000 | wc -c"));
  ASSERT_TRUE(done.exit);
  EXPECT_EQ(done.out, "20000000\n");
  EXPECT_GE(done.exit->wall_us, 100'000u);
  EXPECT_GT(done.exit->start_us, 0u);
  EXPECT_LE(done.exit->start_us + done.exit->wall_us, stopwatch.elapsed_us());
  EXPECT_GT(done.exit->user_us + done.exit->system_us, 0u);
  EXPECT_GE(done.exit->peak_memory_bytes, 20'000'000u);
}

// Such a program may have ended before the agent sees that it was executed.
TEST_P(Agent, TheShortestProgramTakesTime) {
  Start start = shell("");
  start.arguments = {"/bin/true"};
  for (int i = 0; i < 50; ++i) {
    Record done = run(start);
    ASSERT_TRUE(done.exit);
    EXPECT_GT(done.exit->wall_us, 0u);
  }
}

TEST_P(Agent, BeyondTheOutputLimitIsCountedNotKept) {
  Start start = shell("head -c 3000000 /dev/zero; echo tail >&2");
  start.output_limit_bytes = 100'000;
  Record done = run(start);
  ASSERT_TRUE(done.exit);
  EXPECT_EQ(done.exit->status, 0);
  EXPECT_EQ(done.out.size(), 100'000u);
  EXPECT_EQ(done.exit->stdout_bytes, 100'000u);
  EXPECT_EQ(done.exit->stdout_cut, 2'900'000u);
  EXPECT_EQ(done.err, "tail\n");
  EXPECT_EQ(done.exit->stderr_cut, 0u);
}

TEST_P(Agent, BackgroundChildNeitherHoldsUpTheExecNorDiesOfItsPipe) {
  std::string marker = "/tmp/atoll-agent-test-marker-" + std::to_string(getpid());
  std::string go_on = marker + "-go-on";
  // The child waits for what is there only after the exec has ended.
  Record done = run(shell("(until [ -e " + go_on +
                          " ]; do sleep 0.1; done; head -c 500000 /dev/zero; echo $? >" + marker +
                          ") & echo up"));
  ASSERT_TRUE(done.exit);
  EXPECT_EQ(done.out, "up\n");
  EXPECT_EQ(sandbox_.leaves().size(), 1u) << "the child lives on in its leaf";
  ASSERT_TRUE(Fd(open(go_on.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666)));
  EXPECT_TRUE(leaves_vanish());
  auto text = read_file(marker);
  unlink(marker.c_str());
  unlink(go_on.c_str());
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, "0\n") << "neither SIGPIPE nor a blocked write";
}

TEST_P(Agent, EndlessBackgroundWriterDoesNotKeepTheExecOpen) {
  daemon_.start(1, shell("yes & sleep 0.2; echo $! >&2"));
  const Record& done = daemon_.finish(1);
  ASSERT_TRUE(done.exit);
  EXPECT_EQ(done.exit->status, 0);
  daemon_.start(2, shell("kill " + done.err));
  EXPECT_EQ(daemon_.finish(2).exit->status, 0);
  EXPECT_TRUE(leaves_vanish());
}

TEST_P(Agent, ReapsOrphans) {
  EXPECT_EQ(run(shell("for i in 1 2 3 4 5; do (sleep 0.1 &) ; done")).exit->status, 0);
  EXPECT_TRUE(leaves_vanish());
  std::string pid = std::to_string(sandbox_.agent_pid());
  std::string path = "/proc/" + pid + "/task/" + pid + "/children";
  size_t expected = GetParam() == Starter::kSpawner ? 1 : 0;
  auto count = [&] {
    auto children = read_file(path);
    return std::count(children->begin(), children->end(), ' ');
  };
  EXPECT_TRUE(daemon_.run_until([&] { return static_cast<size_t>(count()) == expected; }));
}

TEST_P(Agent, IsHiddenFromRootInTheSandbox) {
  Start start = shell("cat /proc/1/maps");
  start.user = "root";
  Record done = run(start);
  EXPECT_EQ(done.out, "");
  EXPECT_NE(done.err.find("Permission denied"), std::string::npos) << done.err;
}

TEST_P(Agent, StartFailureOfThePlatformIsNotAnExit) {
  daemon_.start(5, shell("sleep 60 & echo $!"));
  EXPECT_EQ(daemon_.finish(5).exit->status, 0);
  std::string child = daemon_.record(5).out;
  ASSERT_EQ(sandbox_.leaves().size(), 1u);
  ASSERT_TRUE(catches_up(daemon_));
  daemon_.forget(5);
  daemon_.start(5, shell("true"));
  const Record& done = daemon_.finish(5);
  ASSERT_TRUE(done.failed) << "the leaf of that number is still in use";
  EXPECT_EQ(done.failed->operation, "mkdir cgroup");
  EXPECT_EQ(done.failed->system_errno, EEXIST);
  EXPECT_FALSE(done.exit);
  daemon_.start(6, shell("kill " + child));
  EXPECT_EQ(daemon_.finish(6).exit->status, 0);
  EXPECT_TRUE(leaves_vanish());
}

TEST_P(Agent, RefusesMoreThanItsNumberOfExecs) {
  // One more than fits; each stays known until its end is acknowledged.
  for (uint32_t exec = 1; exec <= kMaxExecs + 1; ++exec) daemon_.start(exec, shell("exit 0"));
  auto all_ended = [&] {
    for (uint32_t exec = 1; exec <= kMaxExecs + 1; ++exec)
      if (!daemon_.record(exec).ended()) return false;
    return true;
  };
  ASSERT_TRUE(daemon_.run_until(all_ended, 2 * test_timeout()));
  for (uint32_t exec = 1; exec <= kMaxExecs; ++exec) ASSERT_TRUE(daemon_.record(exec).exit) << exec;
  ASSERT_TRUE(daemon_.record(kMaxExecs + 1).failed);
  EXPECT_EQ(daemon_.record(kMaxExecs + 1).failed->operation, "too many execs");
  EXPECT_TRUE(leaves_vanish());
}

bool ends(const TestSandbox& sandbox, TestDaemon& daemon) {
  return daemon.run_until([&] { return !sandbox.agent_is_alive(); });
}

TEST(AgentWithSpawner, EndsTheSandboxWithoutItsSpawnerButOnlyAfterWhatRunsIsTold) {
  TestSandbox sandbox(Starter::kSpawner);
  if (!sandbox.problem().empty()) GTEST_SKIP() << sandbox.problem();
  TestDaemon daemon(sandbox);
  daemon.connect();
  daemon.start(1, shell("sleep 0.5; echo still here"));
  ASSERT_TRUE(daemon.run_until([&] { return daemon.record(1).pid.has_value(); }));
  ASSERT_GT(sandbox.spawner_pid(), 0);
  ASSERT_EQ(kill(sandbox.spawner_pid(), SIGKILL), 0);
  for (uint32_t exec : {2, 3}) {
    daemon.start(exec, shell("true"));
    const Record& done = daemon.finish(exec);
    ASSERT_TRUE(done.failed);
    EXPECT_EQ(done.failed->operation, "spawner");
  }
  EXPECT_TRUE(sandbox.agent_is_alive());
  EXPECT_EQ(daemon.finish(1).out, "still here\n");
  EXPECT_TRUE(ends(sandbox, daemon));
}

TEST(AgentWithSpawner, EndsAtOnceWhenNothingRuns) {
  TestSandbox sandbox(Starter::kSpawner);
  if (!sandbox.problem().empty()) GTEST_SKIP() << sandbox.problem();
  TestDaemon daemon(sandbox);
  daemon.connect();
  ASSERT_EQ(kill(sandbox.spawner_pid(), SIGKILL), 0);
  EXPECT_TRUE(ends(sandbox, daemon));
}

TEST(AgentWithSpawner, StoppedSpawnerIsGivenUpAndItsLateAnswerIsNotTaken) {
  TestSandbox sandbox(Starter::kSpawner);
  if (!sandbox.problem().empty()) GTEST_SKIP() << sandbox.problem();
  TestDaemon daemon(sandbox);
  daemon.connect();
  daemon.start(1, shell("exec sleep 60"));
  ASSERT_TRUE(daemon.run_until([&] { return daemon.record(1).pid.has_value(); }));
  // In-sandbox root may do that.
  ASSERT_EQ(kill(sandbox.spawner_pid(), SIGSTOP), 0);
  daemon.start(2, shell("echo late"));
  const Record& timed_out = daemon.finish(2);
  ASSERT_TRUE(timed_out.failed);
  EXPECT_EQ(timed_out.failed->system_errno, ETIMEDOUT);
  ASSERT_EQ(kill(sandbox.spawner_pid(), SIGCONT), 0);
  daemon.start(3, shell("echo never"));
  const Record& done = daemon.finish(3);
  ASSERT_TRUE(done.failed);
  EXPECT_EQ(done.failed->operation, "spawner");
  EXPECT_EQ(daemon.record(2).out, "");
  daemon.send_raw(encode_signal(1, SIGKILL));
  EXPECT_TRUE(daemon.finish(1).exit);
  EXPECT_TRUE(ends(sandbox, daemon));
}

}  // namespace
}  // namespace atl::agent
