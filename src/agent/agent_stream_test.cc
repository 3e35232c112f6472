// The stream between the daemon and the real agent: flow control, broken connections, bad frames.
#include <signal.h>
#include <unistd.h>

#include <random>

#include <gtest/gtest.h>

#include "agent/fixture_test.h"

namespace atl::agent {
namespace {

class AgentStream : public testing::Test {
 protected:
  void SetUp() override {
    if (!sandbox_.problem().empty()) GTEST_SKIP() << sandbox_.problem();
  }
  void TearDown() override {
    if (!sandbox_.problem().empty()) return;
    EXPECT_TRUE(sandbox_.agent_is_alive());
    EXPECT_EQ(daemon_.contradiction(), "");
  }
  bool says(uint32_t exec, std::string_view text) {
    return daemon_.run_until([&] { return daemon_.record(exec).out == text; });
  }

  TestSandbox sandbox_{Starter::kAgent};
  TestDaemon daemon_{sandbox_};
};

std::string numbers_until(int last) {
  std::string text;
  for (int i = 1; i <= last; ++i) {
    text += std::to_string(i);
    text += '\n';
  }
  return text;
}

TEST_F(AgentStream, HelloCarriesTheNonceAndNothingFollowsBeforeWelcome) {
  Hello hello = daemon_.connect();
  EXPECT_EQ(hello.version, kProtocolVersion);
  EXPECT_EQ(hello.nonce[0], 0x5a);
  EXPECT_TRUE(hello.execs.empty());
  daemon_.start(1, shell("echo up; exec sleep 60"));
  ASSERT_TRUE(says(1, "up\n"));
  hello = daemon_.connect_without_welcome();
  ASSERT_EQ(hello.execs.size(), 1u);
  EXPECT_EQ(hello.execs[0].exec, 1u);
  EXPECT_EQ(hello.execs[0].stdout_offset, 3u);
  int frames = daemon_.record(1).started_frames;
  EXPECT_FALSE(daemon_.receive(200));
  daemon_.send_welcome();
  EXPECT_TRUE(daemon_.run_until([&] { return daemon_.record(1).started_frames > frames; }));
}

TEST_F(AgentStream, NothingIsLostOrDoubledThroughManyReconnects) {
  constexpr int kLast = 2'700'000;
  std::string expected = numbers_until(kLast);
  ASSERT_GT(expected.size(), 20'000'000u);
  daemon_.connect();
  daemon_.start(1, shell("seq 1 " + std::to_string(kLast) + "; echo end >&2; exit 9"));
  std::mt19937 random(20260711);
  int reconnects = 0;
  while (reconnects < 50) {
    // Break off at a random point of the stream, sometimes in the middle of a frame.
    size_t until = daemon_.record(1).out.size() + random() % 800'000;
    until = std::min(until, expected.size() * static_cast<size_t>(reconnects + 1) / 51);
    daemon_.run_until([&] { return daemon_.record(1).out.size() >= until; });
    if (random() % 4 == 0) daemon_.disconnect();
    daemon_.connect();
    ++reconnects;
  }
  const Record& done = daemon_.finish(1);
  ASSERT_TRUE(done.exit);
  EXPECT_EQ(done.exit->status, 9);
  EXPECT_EQ(done.exit->stdout_bytes, expected.size());
  EXPECT_TRUE(done.out == expected);
  EXPECT_EQ(done.err, "end\n");
}

TEST_F(AgentStream, FullWindowStopsTheProgramAndNobodyElse) {
  daemon_.connect();
  daemon_.record(1).acknowledge = Record::Acknowledge::kNever;
  daemon_.start(1, shell("echo begin >&2; seq 1 500000; echo end >&2"));
  ASSERT_TRUE(daemon_.run_until([&] { return daemon_.record(1).out.size() >= kWindowBytes; }));
  daemon_.start(2, shell("seq 1 500000"));
  EXPECT_EQ(daemon_.finish(2).out, numbers_until(500'000));
  linger(daemon_, std::chrono::milliseconds(200));
  EXPECT_EQ(daemon_.record(1).out.size(), kWindowBytes);
  EXPECT_EQ(daemon_.record(1).err, "begin\n") << "the program waits in its write";
  daemon_.record(1).acknowledge = Record::Acknowledge::kAtOnce;
  daemon_.acknowledge_output(1);
  const Record& done = daemon_.finish(1);
  EXPECT_EQ(done.out, numbers_until(500'000));
  EXPECT_EQ(done.err, "begin\nend\n");
}

TEST_F(AgentStream, OutputOfAnEndedProgramWaitsForTheWindow) {
  daemon_.connect();
  daemon_.record(1).acknowledge = Record::Acknowledge::kNever;
  // More than the window, less than window and pipe together: the program ends, the exec does not.
  daemon_.start(1, shell("head -c 300000 /dev/zero"));
  ASSERT_TRUE(daemon_.run_until([&] { return daemon_.record(1).out.size() == kWindowBytes; }));
  // The answer comes when the agent has seen the end: no such process is left.
  daemon_.start(2, shell("while kill -0 " + std::to_string(*daemon_.record(1).pid) +
                         " 2>/dev/null; do sleep 0.01; done"));
  ASSERT_TRUE(daemon_.finish(2).exit);
  linger(daemon_, std::chrono::milliseconds(60));
  EXPECT_FALSE(daemon_.record(1).exit);
  daemon_.record(1).acknowledge = Record::Acknowledge::kAtOnce;
  daemon_.acknowledge_output(1);
  const Record& done = daemon_.finish(1);
  ASSERT_TRUE(done.exit);
  EXPECT_EQ(done.out.size(), 300'000u);
  EXPECT_GE(done.exit->drain_us, 50'000u);
}

TEST_F(AgentStream, WorksOnWithoutAnyConnection) {
  daemon_.connect();
  daemon_.start(1, shell("sleep 0.2; echo late; exit 4"));
  Start endless = shell("exec sleep 60");
  endless.timeout_ms = 200;
  daemon_.start(2, endless);
  ASSERT_TRUE(daemon_.run_until([&] { return daemon_.record(2).pid.has_value(); }));
  daemon_.disconnect();
  EXPECT_TRUE(eventually([&] { return sandbox_.leaves().empty(); }))
      << "both ended while nobody was there";
  daemon_.connect();
  EXPECT_EQ(daemon_.finish(1).out, "late\n");
  EXPECT_EQ(daemon_.record(1).exit->status, 4);
  ASSERT_TRUE(daemon_.finish(2).exit);
  EXPECT_EQ(daemon_.record(2).exit->cause, Cause::kWallTime);
}

TEST_F(AgentStream, ExitIsRepeatedUntilAcknowledgedThenForgotten) {
  daemon_.connect();
  daemon_.start(1, shell("exit 7"));
  for (int frames = 1; frames <= 3; ++frames) {
    ASSERT_TRUE(daemon_.run_until([&] { return daemon_.record(1).exit_frames == frames; }));
    EXPECT_EQ(daemon_.connect().execs.size(), 1u);
  }
  daemon_.finish(1);  // at once after the welcome: the exit is known from an earlier connection
  EXPECT_TRUE(catches_up(daemon_)) << "the acknowledgement broke the connection";
  EXPECT_TRUE(daemon_.connect().execs.empty());
}

TEST_F(AgentStream, ExecLeftOutOfTheWelcomeIsKilledAndForgotten) {
  daemon_.connect();
  daemon_.start(1, shell("sleep 60 & echo up; sleep 60"));
  daemon_.start(2, shell("echo up; sleep 0.5; echo done"));
  ASSERT_TRUE(says(1, "up\n") && says(2, "up\n"));
  daemon_.forget(1);
  daemon_.connect();
  EXPECT_EQ(daemon_.finish(2).out, "up\ndone\n");
  EXPECT_TRUE(daemon_.run_until([&] { return sandbox_.leaves().empty(); }));
  ASSERT_TRUE(catches_up(daemon_));  // or the new connection overtakes what was sent
  EXPECT_EQ(daemon_.connect().execs.size(), 0u);
}

TEST_F(AgentStream, SecondStartOfAnExecIsNotASecondProgram) {
  daemon_.connect();
  daemon_.start(1, shell("echo once; sleep 0.3"));
  ASSERT_TRUE(says(1, "once\n"));
  uint32_t pid = *daemon_.record(1).pid;
  daemon_.start(1, shell("echo twice"));
  ASSERT_TRUE(daemon_.run_until([&] { return daemon_.record(1).started_frames == 2; }));
  EXPECT_EQ(*daemon_.record(1).pid, pid);
  EXPECT_EQ(daemon_.finish(1).out, "once\n");
}

TEST_F(AgentStream, NewestConnectionWins) {
  daemon_.connect();
  TestDaemon newer(sandbox_);
  newer.connect();
  EXPECT_TRUE(daemon_.is_dropped());
  newer.start(1, shell("echo new"));
  EXPECT_EQ(newer.finish(1).out, "new\n");
}

TEST_F(AgentStream, BadFrameDropsTheConnectionAndNothingElse) {
  daemon_.connect();
  daemon_.start(1, shell("echo up; exec sleep 60"));
  ASSERT_TRUE(says(1, "up\n"));
  ASSERT_TRUE(catches_up(daemon_));
  Start bad_start = shell("true");
  bad_start.directory = "relative";
  std::string long_frame = encode_signal(1, 9);
  long_frame[3] = 0x7f;
  std::string bad_frames[] = {
      std::string(12, '\xff'),
      encode_started(1, 5),
      long_frame,
      encode_signal(1, 0),
      encode(2, bad_start),
      encode(0, shell("true")),
      encode(2'000'000'000, shell("true")),
      encode(1, Acknowledge{Stream::kStdout, 4}),
      encode(1, Acknowledge{Stream::kStdout, 0}),
      encode_exit_acknowledge(1),
      encode(Welcome{kProtocolVersion, {{1, 3, 0}}}),
  };
  for (const std::string& bytes : bad_frames) {
    daemon_.connect();
    daemon_.send_raw(bytes);
    EXPECT_TRUE(daemon_.is_dropped()) << "frame type " << int{bytes[4]};
  }
  Hello hello = daemon_.connect();
  ASSERT_EQ(hello.execs.size(), 1u);
  daemon_.send_raw(encode_signal(1, SIGKILL));
  EXPECT_EQ(daemon_.finish(1).exit->status, SIGKILL);
}

TEST_F(AgentStream, BadWelcomeDropsTheConnectionAndKillsNothing) {
  daemon_.connect();
  daemon_.start(1, shell("echo up; exec sleep 60"));
  ASSERT_TRUE(says(1, "up\n"));
  ASSERT_TRUE(catches_up(daemon_));
  std::string bad_welcomes[] = {
      encode_signal(1, 9),
      encode(Welcome{kProtocolVersion, {{1, 4, 0}}}),
      encode(Welcome{kProtocolVersion, {{1, 2, 0}}}),
      encode(Welcome{kProtocolVersion, {{1, 3, 1}}}),
      encode(Welcome{kProtocolVersion, {{1, 3, 0}, {1, 3, 0}}}),
      encode(Welcome{kProtocolVersion, {{1, 3, 0}, {2, 0, 0}}}),
      encode(Welcome{kProtocolVersion + 1, {}}),
  };
  for (const std::string& bytes : bad_welcomes) {
    daemon_.connect_without_welcome();
    daemon_.send_raw(bytes);
    EXPECT_TRUE(daemon_.is_dropped());
  }
  EXPECT_EQ(daemon_.connect().execs.size(), 1u);
  EXPECT_EQ(sandbox_.leaves().size(), 1u);
}

}  // namespace
}  // namespace atl::agent
