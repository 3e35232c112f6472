// Programs that are started ahead, wait at their control socket, and are told to begin.
#include <thread>

#include "agent/channel_fixture_test.h"

namespace atl::agent {
namespace {

class AgentControl : public FileTest {
 protected:
  static constexpr uint32_t kExec = 7;

  void start(const std::string& script) {
    Start program = shell(script);
    program.controlled = true;
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
  start("read x <&5; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; read y <&5");
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  uint32_t channel =
      begin("go\n", {.timeout_ms = 500, .cpu_time_ms = 60'000, .output_limit_bytes = 100});
  const Record& done = daemon_.finish(kExec);
  EXPECT_EQ(done.exit->cause, Cause::kWallTime);
  EXPECT_GE(done.exit->wall_us, 500'000u);
  EXPECT_LT(done.exit->start_us, 100'000u);
  EXPECT_GT(done.exit->user_us + done.exit->system_us, 1000u);
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

}  // namespace
}  // namespace atl::agent
