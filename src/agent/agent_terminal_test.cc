// Programs on a terminal, with the real agent as process 1.
#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>

#include "agent/exec_case_test.h"

namespace atl::agent {
namespace {

class AgentTerminal : public ExecCase {
 protected:
  void resize(uint32_t exec, TerminalSize size) { daemon_.send_raw(encode(exec, size)); }
};

INSTANTIATE_TEST_SUITE_P(StartedBy, AgentTerminal,
                         testing::Values(Starter::kAgent, Starter::kSpawner), starter_name);

Start on_terminal(std::string script) {
  Start start = shell(std::move(script));
  start.input_mode = InputMode::kOpen;
  start.terminal = TerminalSize{80, 24};
  return start;
}

TEST_P(AgentTerminal, IsOneOfTheSandboxAndOfTheGivenSize) {
  Record done = run(on_terminal("tty; stty size; echo $TERM; echo err >&2"));
  EXPECT_EQ(done.out, "/dev/pts/0\r\n24 80\r\nxterm-256color\r\nerr\r\n");
  EXPECT_EQ(done.err, "");
  ASSERT_TRUE(done.exit);
  EXPECT_EQ(done.exit->stderr_bytes, 0u);
}

TEST_P(AgentTerminal, BelongsToTheUserAndControlsTheProgram) {
  Start start = on_terminal("stat -c '%u %g %a' $(tty); echo hello >/dev/tty");
  EXPECT_EQ(run(start).out, "1000 5 620\r\nhello\r\n");
  start.user = "root";
  EXPECT_EQ(run(start).out, "0 5 620\r\nhello\r\n");
  EXPECT_NE(run(shell("echo hello >/dev/tty")).exit->status, 0) << "without one there is none";
}

TEST_P(AgentTerminal, KeepsTheGivenTypeAndTheExitCode) {
  Start start = on_terminal("echo $TERM; exit 7");
  start.environment.push_back("TERM=dumb");
  Record done = run(start);
  EXPECT_EQ(done.out, "dumb\r\n");
  ASSERT_TRUE(done.exit);
  EXPECT_EQ(done.exit->status, 7);
}

TEST_P(AgentTerminal, TellsTheProgramOfANewSize) {
  daemon_.start(1, on_terminal("trap 'stty size; exit 0' WINCH; echo up;"
                               " while :; do sleep 0.05; done"));
  ASSERT_TRUE(prints(1, "up"));
  resize(1, {132, 50});
  EXPECT_EQ(daemon_.finish(1).out, "up\r\n50 132\r\n");
  resize(1, {10, 10});  // gone
  daemon_.start(2, shell("sleep 0.2"));
  resize(2, {10, 10});  // never had one
  EXPECT_EQ(daemon_.finish(2).exit->status, 0);
}

TEST_P(AgentTerminal, BadSizeBreaksTheProtocol) {
  daemon_.start(1, on_terminal("echo up; sleep 60"));
  ASSERT_TRUE(prints(1, "up"));
  resize(1, {0, 24});
  EXPECT_TRUE(daemon_.is_dropped());
  daemon_.connect();
  kill(1);
  EXPECT_TRUE(daemon_.finish(1).exit);
}

TEST_P(AgentTerminal, InterruptCharacterInterrupts) {
  daemon_.start(1, on_terminal("stty -echo; trap 'echo caught; exit 3' INT; echo up;"
                               " while :; do sleep 0.05; done"));
  ASSERT_TRUE(prints(1, "up"));
  type(1, 0, "\x03");
  const Record& done = daemon_.finish(1);
  ASSERT_TRUE(done.exit);
  EXPECT_EQ(done.out, "up\r\ncaught\r\n");
  EXPECT_EQ(done.exit->status, 3);
}

TEST_P(AgentTerminal, SignalOfTheClientGoesToTheMainProcess) {
  daemon_.start(1, on_terminal("trap 'echo caught; exit 3' INT; echo up;"
                               " while :; do sleep 0.05; done"));
  ASSERT_TRUE(prints(1, "up"));
  daemon_.send_raw(encode_signal(1, SIGINT));
  const Record& done = daemon_.finish(1);
  EXPECT_EQ(done.out, "up\r\ncaught\r\n");
  EXPECT_EQ(done.exit->status, 3);
}

TEST_P(AgentTerminal, StopCharacterStopsTheForegroundJob) {
  daemon_.start(1, on_terminal("set -m; stty -echo; echo up; sleep 60; echo stopped; jobs;"
                               " kill %1; fg %1 >/dev/null; echo over"));
  auto stopped = [&] { return record(1).out.find("stopped") != std::string::npos; };
  // Until it is in the foreground there is nobody to stop.
  for (uint64_t offset = 0; !stopped() && offset * 200 < static_cast<uint64_t>(test_timeout_ms());
       ++offset) {
    type(1, offset, "\x1a");
    daemon_.run_until(stopped, std::chrono::milliseconds(200));
  }
  const Record& done = daemon_.finish(1);
  ASSERT_TRUE(done.exit) << done.out;
  EXPECT_NE(done.out.find("stopped"), std::string::npos) << done.out;
  EXPECT_NE(done.out.find("Stopped"), std::string::npos) << done.out;
  EXPECT_NE(done.out.find("over"), std::string::npos) << done.out;
}

TEST_P(AgentTerminal, EndOfInputEndsTheReader) {
  daemon_.start(1, on_terminal("stty -echo; echo up; cat; echo end"));
  ASSERT_TRUE(prints(1, "up"));
  ASSERT_TRUE(daemon_.run_until([this] { return sandbox_.has_program("cat", 'S'); }));
  type(1, 0, "line\n");
  end_input(1, 5);
  EXPECT_EQ(daemon_.finish(1).out, "up\r\nline\r\nend\r\n");
  EXPECT_TRUE(record(1).input->closed);
}

TEST_P(AgentTerminal, EndOfInputInTheMiddleOfALineDoesToo) {
  daemon_.start(1, on_terminal("stty -echo; echo up; cat; echo end"));
  ASSERT_TRUE(prints(1, "up"));
  ASSERT_TRUE(daemon_.run_until([this] { return sandbox_.has_program("cat", 'S'); }));
  type(1, 0, "part");
  end_input(1, 4);
  EXPECT_EQ(daemon_.finish(1).out, "up\r\npartend\r\n");
}

TEST_P(AgentTerminal, GivenInputIsTypedAndEnds) {
  Start start = on_terminal("cat; echo end");
  start.input = "typed\n";
  start.input_mode = InputMode::kEnds;
  Record done = run(start);
  // Once by the terminal, once by cat; the character that ends it is shown and covered again.
  EXPECT_EQ(done.out.substr(0, 7), "typed\r\n");
  EXPECT_NE(done.out.find("typed\r\nend\r\n"), std::string::npos) << done.out;
}

TEST_P(AgentTerminal, RawModePassesEveryByte) {
  daemon_.start(1, on_terminal("stty raw -echo; echo up; head -c 4 | od -An -tx1"));
  ASSERT_TRUE(prints(1, "up"));
  type(1, 0, "\x03\x1a\x04\r");
  EXPECT_EQ(daemon_.finish(1).out, "up\n 03 1a 04 0d\n");
}

TEST_P(AgentTerminal, ManyLinesGoThroughBothWays) {
  std::string text, shown;
  for (int i = 0; i < 20'000; ++i) {
    text += std::to_string(i) + "\n";
    shown += std::to_string(i) + "\r\n";
  }
  Start start = on_terminal("stty -echo; echo up; exec cat");
  daemon_.start(1, start);
  ASSERT_TRUE(prints(1, "up"));
  ASSERT_TRUE(daemon_.run_until([this] { return sandbox_.has_program("cat", 'S'); }));
  for (size_t sent = 0; sent < text.size();) {
    std::string_view piece = std::string_view(text).substr(sent, 16 * 1024);
    type(1, sent, piece);
    sent += piece.size();
    ASSERT_TRUE(takes(1, sent));
  }
  end_input(1, text.size());
  EXPECT_TRUE(daemon_.finish(1).out == "up\r\n" + shown);
}

TEST_P(AgentTerminal, AllThatWasWrittenIsThereWhenTheProgramHasEnded) {
  for (int i = 0; i < 20; ++i) {
    Record done = run(on_terminal("trap '' HUP; sleep 0.1 & exec seq 5000"));
    ASSERT_TRUE(done.exit);
    ASSERT_EQ(done.out.size(), 23893u + 5000u);
    ASSERT_TRUE(done.out.ends_with("\n5000\r\n"));
  }
}

TEST_P(AgentTerminal, BeyondTheOutputLimitIsCountedNotKept) {
  Start start = on_terminal("head -c 300000 /dev/zero | tr '\\0' x");
  start.output_limit_bytes = 1000;
  Record done = run(start);
  ASSERT_TRUE(done.exit);
  EXPECT_EQ(done.out, std::string(1000, 'x'));
  EXPECT_EQ(done.exit->stdout_cut, 299'000u);
}

TEST_P(AgentTerminal, BackgroundChildDoesNotHoldUpTheExec) {
  Record done = run(on_terminal("trap '' HUP; (sleep 60; echo late) & echo up"));
  ASSERT_TRUE(done.exit);
  EXPECT_EQ(done.out, "up\r\n");
  EXPECT_EQ(sandbox_.leaves().size(), 1u) << "the child lives on in its leaf";
  ASSERT_TRUE(daemon_.run_until([this] { return sandbox_.has_program("sleep", 'S'); }));
  EXPECT_EQ(run(shell("pkill -x sleep")).exit->status, 0);
}

TEST_P(AgentTerminal, EndlessBackgroundWriterDoesNotKeepTheExecOpen) {
  daemon_.start(1, on_terminal("trap '' HUP; yes & sleep 0.2"));
  ASSERT_TRUE(daemon_.finish(1).exit);
  daemon_.start(2, shell("pkill -x yes"));
  EXPECT_EQ(daemon_.finish(2).exit->status, 0);
}

TEST_P(AgentTerminal, FailureToStartIsSaidOnIt) {
  Start start = on_terminal("");
  start.arguments = {"no-such-program"};
  Record done = run(start);
  ASSERT_TRUE(done.exit);
  EXPECT_EQ(done.exit->status, 127);
  EXPECT_EQ(done.out, "atoll: exec no-such-program: No such file or directory\r\n");
  EXPECT_EQ(done.err, "");
}

TEST_P(AgentTerminal, SudoWorksOnIt) {
  ReachableProgram sudo(ATOLL_SUDO_PATH);
  Start start = on_terminal(sudo.path() + " sh -c 'id -u; stty size <&1'");
  EXPECT_EQ(run(start).out, "0\r\n24 80\r\n");
}

TEST_P(AgentTerminal, NobodyTypesIntoItFromInside) {
  ReachableProgram caller(ATOLL_CALLER_PATH);
  for (unsigned long request : {TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS}) {
    Start start = on_terminal("");
    start.arguments = {caller.path(),           "call", std::to_string(SYS_ioctl), "0",
                       std::to_string(request), "x"};
    for (const char* user : {"user", "root"}) {
      start.user = user;
      EXPECT_EQ(run(start).out, std::to_string(EPERM) + "\r\n") << request;
    }
  }
  Start harmless = on_terminal("");
  harmless.arguments = {
      caller.path(), "call", std::to_string(SYS_ioctl), "0", std::to_string(TIOCSCTTY), "0"};
  EXPECT_EQ(run(harmless).out, "ok\r\n") << "the call itself works";
}

TEST_P(AgentTerminal, ManyComeAndGo) {
  for (int i = 0; i < 50; ++i) ASSERT_EQ(run(on_terminal("tty")).out, "/dev/pts/0\r\n");
}

}  // namespace
}  // namespace atl::agent
