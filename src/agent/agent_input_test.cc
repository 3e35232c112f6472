// What programs read, with the real agent as process 1.
#include <string>

#include "agent/exec_case_test.h"

namespace atl::agent {
namespace {

class AgentInput : public ExecCase {
 protected:
  // Streams as the daemon does: never more than the credit beyond what it was told.
  bool stream(uint32_t exec, const std::string& data) {
    size_t sent = 0;
    while (sent < data.size()) {
      uint64_t told = record(exec).input ? record(exec).input->offset : 0;
      if (sent == told + kInputCreditBytes && !takes(exec, told + 1)) return false;
      told = record(exec).input ? record(exec).input->offset : 0;
      size_t most = std::min<size_t>(kMaxInputBytes, told + kInputCreditBytes - sent);
      std::string_view piece = std::string_view(data).substr(sent, most);
      type(exec, sent, piece);
      sent += piece.size();
    }
    return true;
  }
};

INSTANTIATE_TEST_SUITE_P(StartedBy, AgentInput, testing::Values(Starter::kAgent, Starter::kSpawner),
                         starter_name);

Start open_shell(std::string script) {
  Start start = shell(std::move(script));
  start.input_mode = InputMode::kOpen;
  return start;
}

std::string many_lines(size_t bytes) {
  std::string text;
  for (size_t i = 0; text.size() < bytes; ++i) text += std::to_string(i) + "\n";
  text.resize(bytes);
  return text;
}

TEST_P(AgentInput, IsTheNullDeviceWhereThereIsNone) {
  EXPECT_EQ(run(shell("readlink /proc/self/fd/0; wc -c")).out, "/dev/null\n0\n");
}

TEST_P(AgentInput, GivenWithTheStartIsReadToItsEnd) {
  Start start = shell("cat; echo end");
  start.input = "given\n";
  EXPECT_EQ(run(start).out, "given\nend\n");
  start.input = many_lines(kMaxFirstInputBytes);
  Record done = run(start);
  EXPECT_EQ(done.out, start.input + "end\n");
  EXPECT_FALSE(done.input) << "only an open input is told of";
}

TEST_P(AgentInput, GivenButNotReadDoesNoHarm) {
  Start start = shell("echo up; exit 3");
  start.input = many_lines(kMaxFirstInputBytes);
  Record done = run(start);
  ASSERT_TRUE(done.exit);
  EXPECT_EQ(done.exit->status, 3);
  EXPECT_EQ(done.out, "up\n");
}

TEST_P(AgentInput, StreamedArrivesAsItIsSent) {
  Start start = open_shell("while read line; do echo got $line; done; echo end");
  start.input = "first\n";
  daemon_.start(1, start);
  ASSERT_TRUE(prints(1, "got first\n"));
  type(1, 6, "second\n");
  ASSERT_TRUE(prints(1, "got second\n"));
  ASSERT_TRUE(takes(1, 13));
  EXPECT_FALSE(record(1).input->closed);
  end_input(1, 13);
  const Record& done = daemon_.finish(1);
  EXPECT_EQ(done.out, "got first\ngot second\nend\n");
  EXPECT_TRUE(done.input->closed);
}

TEST_P(AgentInput, ManyBytesGoThroughWithinTheCredit) {
  std::string text = many_lines(3 << 20);
  daemon_.start(1, open_shell("cat"));
  ASSERT_TRUE(stream(1, text));
  end_input(1, text.size());
  EXPECT_TRUE(daemon_.finish(1).out == text);
}

TEST_P(AgentInput, ProgramThatNeverReadsHoldsUpNobody) {
  daemon_.start(1, open_shell("echo up; sleep 60"));
  ASSERT_TRUE(prints(1, "up"));
  auto taken = [&] { return record(1).input ? record(1).input->offset : 0; };
  uint64_t sent = 0;
  std::string piece(kMaxInputBytes, 'x');
  while (sent + piece.size() <= taken() + kInputCreditBytes) {
    ASSERT_LT(sent, 1u << 20) << "taken without end";
    type(1, sent, piece);
    sent += piece.size();
    ASSERT_TRUE(catches_up(daemon_));
  }
  EXPECT_GE(record(1).input->offset, kWindowBytes - kInputCreditBytes);
  EXPECT_LE(record(1).input->offset, kWindowBytes + 64 * 1024);
  next_exec_ = 2;
  EXPECT_EQ(run(shell("echo other")).out, "other\n");
  kill(1);
  EXPECT_TRUE(daemon_.finish(1).exit);
}

TEST_P(AgentInput, OthersDoNotInheritIt) {
  daemon_.start(1, open_shell("cat; echo end"));
  daemon_.start(2, shell("echo up; sleep 60"));
  ASSERT_TRUE(prints(2, "up"));
  end_input(1, 0);
  EXPECT_EQ(daemon_.finish(1).out, "end\n");
  kill(2);
  EXPECT_TRUE(daemon_.finish(2).exit);
}

TEST_P(AgentInput, ProgramMayCloseIt) {
  daemon_.start(1, open_shell("exec <&-; echo closed; sleep 60"));
  ASSERT_TRUE(closes_input(1));
  EXPECT_FALSE(record(1).exit);
  type(1, 0, "late");  // on its way when the program closed it
  end_input(1, 4);
  next_exec_ = 2;
  EXPECT_EQ(run(shell("echo still here")).out, "still here\n");
  kill(1);
  EXPECT_TRUE(daemon_.finish(1).exit);
}

TEST_P(AgentInput, EndOfTheProgramClosesIt) {
  daemon_.start(1, open_shell("exit 4"));
  const Record& done = daemon_.finish(1);
  ASSERT_TRUE(done.exit && done.input);
  EXPECT_TRUE(done.input->closed);
}

TEST_P(AgentInput, BytesThatAreThereAreSkipped) {
  daemon_.start(1, open_shell("cat"));
  type(1, 0, "abc");
  type(1, 0, "abc");
  type(1, 1, "bcdef");
  type(1, 3, "def");
  end_input(1, 6);
  type(1, 2, "cdef");
  end_input(1, 6);
  EXPECT_EQ(daemon_.finish(1).out, "abcdef");
}

TEST_P(AgentInput, WhatCannotBeBreaksTheProtocol) {
  struct {
    const char* what;
    InputMode mode;
    std::string (*frames)(uint32_t exec);
  } const kBroken[] = {
      {"gap", InputMode::kOpen,
       [](uint32_t exec) {
         return encode(exec, Input{3, "x"});
       }},
      {"overflow", InputMode::kOpen,
       [](uint32_t exec) {
         return encode(exec, Input{UINT64_MAX, "x"});
       }},
      {"no bytes", InputMode::kOpen,
       [](uint32_t exec) {
         return encode(exec, Input{0, ""});
       }},
      {"end behind a gap", InputMode::kOpen,
       [](uint32_t exec) { return encode_input_end(exec, 3); }},
      {"after the end", InputMode::kOpen,
       [](uint32_t exec) {
         return encode_input_end(exec, 0) + encode(exec, Input{0, "x"});
       }},
      {"no input", InputMode::kEnds,
       [](uint32_t exec) {
         return encode(exec, Input{0, "x"});
       }},
      {"end of none", InputMode::kEnds, [](uint32_t exec) { return encode_input_end(exec, 0); }},
  };
  uint32_t exec = 0;
  for (const auto& [what, mode, frames] : kBroken) {
    Start start = shell("echo up; sleep 60");
    start.input_mode = mode;
    daemon_.start(++exec, start);
    ASSERT_TRUE(prints(exec, "up")) << what;
    daemon_.send_raw(frames(exec));
    EXPECT_TRUE(daemon_.is_dropped()) << what;
    daemon_.connect();
    kill(exec);
    EXPECT_TRUE(daemon_.finish(exec).exit) << what;
  }
}

TEST_P(AgentInput, BeyondTheCreditBreaksTheProtocol) {
  daemon_.start(1, open_shell("sleep 60"));
  ASSERT_TRUE(takes(1, 0));
  std::string piece(kMaxInputBytes, 'x');
  uint64_t sent = 0;
  std::string frames;
  for (; sent <= kWindowBytes + 256 * 1024; sent += piece.size())
    frames += encode(1, Input{sent, piece});
  daemon_.send_raw(frames);
  EXPECT_TRUE(daemon_.is_dropped());
  daemon_.connect();
  kill(1);
  EXPECT_TRUE(daemon_.finish(1).exit);
}

TEST_P(AgentInput, GoesOnWithTheNextConnection) {
  daemon_.start(1, open_shell("cat"));
  type(1, 0, "before ");
  ASSERT_TRUE(takes(1, 7));
  daemon_.disconnect();
  record(1).input.reset();
  daemon_.connect();
  ASSERT_TRUE(takes(1, 7)) << "told again";
  type(1, 0, "before after");
  end_input(1, 12);
  EXPECT_EQ(daemon_.finish(1).out, "before after");
}

// An atolld that was killed had sent more than the next one knows of.
TEST_P(AgentInput, EndBelowWhatWasReceivedKeepsWhatWasReceived) {
  daemon_.start(1, open_shell("read line; cat; echo end"));
  type(1, 0, "x\nkept");
  ASSERT_TRUE(takes(1, 6));
  daemon_.connect();
  end_input(1, 3);
  const Record& done = daemon_.finish(1);
  EXPECT_EQ(done.out, "keptend\n");
  ASSERT_TRUE(done.input);
  EXPECT_TRUE(done.input->closed);
  EXPECT_EQ(done.input->offset, 6u);
}

TEST_P(AgentInput, IsNotToldOfAfterTheEnd) {
  daemon_.start(1, open_shell("exit 4"));
  ASSERT_TRUE(daemon_.run_until([&] { return record(1).ended(); }));
  int told = record(1).input_frames;
  daemon_.connect();
  ASSERT_TRUE(daemon_.run_until([&] { return record(1).exit_frames == 2; }));
  EXPECT_EQ(record(1).input_frames, told);
  daemon_.acknowledge_exit(1);
}

TEST_P(AgentInput, ClosedIsToldAgainToTheNextConnection) {
  daemon_.start(1, open_shell("exec <&-; sleep 60"));
  ASSERT_TRUE(closes_input(1));
  record(1).input.reset();
  daemon_.connect();
  EXPECT_TRUE(closes_input(1));
  kill(1);
  EXPECT_TRUE(daemon_.finish(1).exit);
}

}  // namespace
}  // namespace atl::agent
