// Programs that are started ahead, wait at their control socket, and are told to begin.
#include <sys/socket.h>

#include "agent/channel_fixture_test.h"
#include "agent/rest_note.h"
#include "agent/still_files.h"

namespace atl::agent {
namespace {

class AgentControl : public FileTest {
 protected:
  explicit AgentControl(TestLimits limits = {}) : FileTest(limits) {}

  static constexpr uint32_t kExec = 7;

  void start(const std::string& script) {
    Start program = shell(script);
    program.control = ControlMode::kWaits;
    daemon_.start(kExec, program);
    ASSERT_TRUE(daemon_.run_until([&] { return daemon_.record(kExec).pid.has_value(); }));
  }
  uint32_t begin(std::string_view said, Beginning begins = {.output_limit_bytes = 8 << 20}) {
    uint32_t channel = channels_.open_control({kExec, begins});
    channels_.send(channel, said);
    return channel;
  }
  bool hears(uint32_t channel, const std::string& text) {
    return daemon_.run_until([&] { return channels_.at(channel).bytes == text; });
  }
};
ATOLL_FILE_TESTS(AgentControl);

TEST_P(AgentControl, AProgramWaitsAndIsToldToBegin) {
  start("read line <&5; echo got $line; ls /proc/self/fd | tr '\\n' ' '; exit 4");
  EXPECT_EQ(daemon_.record(kExec).out, "");
  begin("work\n");
  const Record& done = daemon_.finish(kExec);
  EXPECT_EQ(done.out, "got work\n0 1 2 3 5 ") << "and the descriptor of ls itself";
  EXPECT_EQ(done.exit->status, 4);
  EXPECT_EQ(done.exit->cause, Cause::kProgram);
}

TEST_P(AgentControl, WhatItPrintedComesBeforeWhatItSays) {
  start("read x <&5; head -c 700000 /dev/zero | tr '\\0' a; echo done >&5; read y <&5");
  daemon_.record(kExec).acknowledge = Record::Acknowledge::kNever;
  uint32_t channel = begin("go\n");
  ASSERT_TRUE(daemon_.run_until([&] { return daemon_.record(kExec).out.size() == kWindowBytes; }));
  EXPECT_EQ(channels_.at(channel).bytes, "");
  daemon_.record(kExec).acknowledge = Record::Acknowledge::kAtOnce;
  daemon_.acknowledge_output(kExec);
  ASSERT_TRUE(daemon_.run_until([&] {
    if (channels_.at(channel).bytes.empty()) return false;
    EXPECT_EQ(daemon_.record(kExec).out.size(), 700'000u);
    return true;
  }));
  EXPECT_EQ(channels_.at(channel).bytes, "done\n");
  channels_.send(channel, "end\n");
  EXPECT_EQ(daemon_.finish(kExec).exit->status, 0);
}

TEST_P(AgentControl, OneThatEndsBeforeItBeginsIsNotTheProgramsFault) {
  start("exit 3");
  EXPECT_EQ(daemon_.finish(kExec).exit->cause, Cause::kUnbegun);
  uint32_t late = begin("work\n");
  ASSERT_TRUE(channels_.wait_closed(late));
  EXPECT_EQ(channels_.at(late).close->system_errno, ESRCH);
}

TEST_P(AgentControl, ItsTimeCountsFromTheBeginning) {
  start("read x <&5; while :; do :; done");
  linger(daemon_, std::chrono::milliseconds(600));
  Stopwatch stopwatch;
  uint32_t channel =
      begin("go\n", {.timeout_ms = 500, .cpu_time_ms = 60'000, .output_limit_bytes = 100});
  const Record& done = daemon_.finish(kExec);
  EXPECT_EQ(done.exit->cause, Cause::kWallTime);
  EXPECT_GE(done.exit->wall_us, 500'000u);
  EXPECT_LE(done.exit->wall_us, stopwatch.elapsed_us());
  EXPECT_EQ(done.exit->start_us, 0u);
  EXPECT_GT(done.exit->user_us + done.exit->system_us, 0u);
  EXPECT_TRUE(channels_.wait_closed(channel));
}

TEST_P(AgentControl, ItsOutputLimitIsThatOfTheBeginning) {
  start("read x <&5; echo 0123456789");
  begin("go\n", {.output_limit_bytes = 4});
  const Record& done = daemon_.finish(kExec);
  EXPECT_EQ(done.out, "0123");
  EXPECT_EQ(done.exit->stdout_cut, 7u);
}

TEST_P(AgentControl, TheSocketOutlivesTheConnection) {
  start("while read line <&5; do echo $line >&5; done");
  uint32_t first = begin("one\n");
  ASSERT_TRUE(hears(first, "one\n"));
  daemon_.connect();
  uint32_t second = channels_.open_control({kExec, std::nullopt});
  channels_.send(second, "two\n");
  ASSERT_TRUE(hears(second, "two\n"));
  channels_.end(second);
  EXPECT_EQ(daemon_.finish(kExec).exit->cause, Cause::kProgram);
}

TEST_P(AgentControl, BeginsOnceAndOnlyIfItIsControlled) {
  start("read x <&5; read y <&5");
  uint32_t first = begin("one\n");
  uint32_t second = channels_.open_control({kExec, Beginning()});
  ASSERT_TRUE(channels_.wait_closed(second));
  EXPECT_EQ(channels_.at(second).close->system_errno, EALREADY);
  daemon_.start(kExec + 1, shell("sleep 30"));
  uint32_t none = channels_.open_control({kExec + 1, Beginning()});
  ASSERT_TRUE(channels_.wait_closed(none));
  EXPECT_EQ(channels_.at(none).close->system_errno, ENOTSOCK);
  daemon_.send_raw(encode_signal(kExec + 1, SIGKILL));
  EXPECT_TRUE(daemon_.finish(kExec + 1).ended());
  channels_.send(first, "two\n");
  EXPECT_EQ(daemon_.finish(kExec).exit->status, 0);
}

TEST_P(AgentControl, InAJailNobodyMakesFilesStandStill) {
  uint32_t channel = channels_.open_control({kStillFiles, std::nullopt});
  ASSERT_TRUE(channels_.wait_closed(channel));
  EXPECT_EQ(channels_.at(channel).close->system_errno, EOPNOTSUPP);
}

// The agent of a machine that begins with the memory of another.
class AgentReborn : public AgentControl {
 protected:
  AgentReborn() : AgentControl({.is_noted = true}) {}
  // As /init tells it; true when the agent has answered.
  bool be_reborn() {
    std::array<unsigned char, kNonceBytes> nonce;
    nonce.fill(7);
    if (send(sandbox_.notes(), nonce.data(), nonce.size(), 0) != ssize_t{kNonceBytes}) return false;
    char note[sizeof(RestNote)];
    ssize_t count = 0;
    while ((count = recv(sandbox_.notes(), note, sizeof note, 0)) > 1) {
    }
    return count == 1;
  }
};
ATOLL_FILE_TESTS(AgentReborn);

TEST_P(AgentReborn, RestsWhileAProgramWaitsAndNotWhileItRuns) {
  start("while read x <&5; do echo got $x; done");
  RestNote note;
  auto noted = [&] {
    return recv(sandbox_.notes(), &note, sizeof note, MSG_DONTWAIT) == ssize_t{sizeof note};
  };
  ASSERT_TRUE(daemon_.run_until(noted));
  uint32_t begun = begin("work\n");
  ASSERT_TRUE(daemon_.run_until([&] { return daemon_.record(kExec).out == "got work\n"; }));
  while (noted()) {  // of the time before
  }
  channels_.send(begun, "more\n");
  ASSERT_TRUE(
      daemon_.run_until([&] { return daemon_.record(kExec).out == "got work\ngot more\n"; }));
  EXPECT_FALSE(noted()) << "it runs";
  channels_.end(begun);
  daemon_.finish(kExec);
}

TEST_P(AgentReborn, WhatWaitsIsToldFirstAndLivesOn) {
  start("head -c 4 <&5 | od -An -tx1 >&5; read x <&5; echo got $x; read y <&5");
  uint32_t before = daemon_.record(kExec).pid.value_or(0);
  ASSERT_TRUE(be_reborn());
  Hello hello = daemon_.connect();
  EXPECT_EQ(hello.nonce[0], 7);
  ASSERT_EQ(hello.execs.size(), 1u);
  EXPECT_EQ(hello.execs[0].exec, kExec);
  uint32_t channel = channels_.open_control({kExec, std::nullopt});
  ASSERT_TRUE(hears(channel, " fe ff ff ff\n")) << channels_.at(channel).bytes;
  EXPECT_EQ(daemon_.record(kExec).started_frames, 2);
  EXPECT_EQ(daemon_.record(kExec).pid, before);
  channels_.give_up(channel);
  ASSERT_TRUE(channels_.wait_closed(channel));
  uint32_t begun = begin("work\n");
  ASSERT_TRUE(daemon_.run_until([&] { return daemon_.record(kExec).out == "got work\n"; }));
  channels_.send(begun, "end\n");
  EXPECT_EQ(daemon_.finish(kExec).exit->cause, Cause::kProgram);
}

TEST_P(AgentReborn, WhatWaitsOutlivesOneConnectionOnly) {
  start("cat <&5 >/dev/null");
  ASSERT_TRUE(be_reborn());
  daemon_.connect();
  ASSERT_TRUE(daemon_.run_until([&] { return daemon_.record(kExec).started_frames == 2; }));
  daemon_.connect();
  EXPECT_EQ(daemon_.finish(kExec).exit->cause, Cause::kUnbegun);
}

class AgentSpeech : public AgentControl {
 protected:
  void speak(const std::string& script, uint64_t output_limit_bytes = 8 << 20) {
    Start program = shell(script);
    program.control = ControlMode::kSpeaks;
    program.input_mode = InputMode::kOpen;
    program.output_limit_bytes = output_limit_bytes;
    daemon_.start(kExec, program);
    ASSERT_TRUE(daemon_.run_until([&] { return daemon_.record(kExec).pid.has_value(); }));
  }
  void say(uint64_t offset, std::string_view text) {
    daemon_.send_raw(encode(kExec, Input{offset, text}));
  }
  bool has_said(const std::string& text) {
    return daemon_.run_until([&] { return daemon_.record(kExec).speech == text; });
  }
};
ATOLL_FILE_TESTS(AgentSpeech);

TEST_P(AgentSpeech, IsAThirdStreamBehindWhatWasPrinted) {
  speak("read x; head -c 700000 /dev/zero | tr '\\0' a; echo done >&5; read y");
  daemon_.record(kExec).acknowledge = Record::Acknowledge::kNever;
  say(0, "go\n");
  ASSERT_TRUE(daemon_.run_until([&] { return daemon_.record(kExec).out.size() == kWindowBytes; }));
  EXPECT_EQ(daemon_.record(kExec).speech, "");
  daemon_.record(kExec).acknowledge = Record::Acknowledge::kAtOnce;
  daemon_.acknowledge_output(kExec);
  ASSERT_TRUE(daemon_.run_until([&] {
    if (daemon_.record(kExec).speech.empty()) return false;
    EXPECT_EQ(daemon_.record(kExec).out.size(), 700'000u);
    return true;
  }));
  say(3, "end\n");
  const Record& done = daemon_.finish(kExec);
  EXPECT_EQ(done.speech, "done\n");
  EXPECT_EQ(done.exit->speech_bytes, 5u);
  EXPECT_EQ(done.exit->status, 0);
}

TEST_P(AgentSpeech, IsNotHeldUpByAFlood) {
  speak("while :; do echo flood; done & read x; echo said >&5; sleep 60");
  say(0, "go\n");
  EXPECT_TRUE(has_said("said\n"));
  daemon_.send_raw(encode_signal(kExec, SIGKILL));
  EXPECT_TRUE(daemon_.finish(kExec).ended());
}

TEST_P(AgentSpeech, IsSentAgainOnTheNextConnection) {
  speak("while read x; do echo $x >&5; done");
  daemon_.record(kExec).acknowledge = Record::Acknowledge::kNever;
  say(0, "one\n");
  ASSERT_TRUE(has_said("one\n"));
  daemon_.record(kExec).speech = "o";  // as if the rest had been lost
  daemon_.connect();
  ASSERT_TRUE(has_said("one\n"));
  say(0, "one\ntwo\n");  // the agent has the first half
  ASSERT_TRUE(has_said("one\ntwo\n"));
  daemon_.send_raw(encode_input_end(kExec, 8));
  EXPECT_EQ(daemon_.finish(kExec).exit->speech_bytes, 8u);
}

TEST_P(AgentSpeech, AFloodWaitsAndIsNeverCut) {
  speak("head -c 3000000 /dev/zero | tr '\\0' s >&5", 10);
  const Record& done = daemon_.finish(kExec);
  EXPECT_EQ(done.speech.size(), 3'000'000u);
  EXPECT_EQ(done.exit->limits_hit & bit(LimitBit::kOutput), 0);
}

TEST_P(AgentSpeech, AGrantGivesMoreOutput) {
  speak("while read x; do printf 0123456789; echo $x >&5; done", 4);
  say(0, "a\n");
  ASSERT_TRUE(has_said("a\n"));
  EXPECT_EQ(daemon_.record(kExec).out, "0123");
  daemon_.send_raw(encode(kExec, Grant{20, 0}));
  say(2, "b\n");
  ASSERT_TRUE(has_said("a\nb\n"));
  EXPECT_EQ(daemon_.record(kExec).out, "01230123456789");
  daemon_.send_raw(encode_input_end(kExec, 4));
  EXPECT_EQ(daemon_.finish(kExec).exit->stdout_cut, 6u);
}

TEST_P(AgentSpeech, AGrantBeginsAProgramThatWaits) {
  Start program = shell("echo ready >&5; read x; echo $x >&5; exit 4");
  program.control = ControlMode::kWaits;
  program.input_mode = InputMode::kOpen;
  daemon_.start(kExec, program);
  uint32_t channel = channels_.open_control({kExec, std::nullopt});
  ASSERT_TRUE(hears(channel, "ready\n"));
  channels_.give_up(channel);
  ASSERT_TRUE(channels_.wait_closed(channel));
  daemon_.send_raw(encode(kExec, Grant{100, 100}));
  say(0, "hello\n");
  const Record& done = daemon_.finish(kExec);
  EXPECT_EQ(done.speech, "hello\n");
  EXPECT_EQ(done.exit->cause, Cause::kProgram);
  EXPECT_EQ(done.exit->status, 4);
}

TEST_P(AgentSpeech, AnInterruptReachesTheChildThatIsWaitedFor) {
  speak("trap 'echo caught >&5' INT; sleep 60; echo over >&5");
  ASSERT_TRUE(daemon_.run_until([this] { return sandbox_.has_program("sleep", 'S'); }));
  daemon_.send_raw(encode_signal(kExec, SIGINT));
  EXPECT_EQ(daemon_.finish(kExec).speech, "caught\nover\n");
}

}  // namespace
}  // namespace atl::agent
