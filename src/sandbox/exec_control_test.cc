#include "sandbox/exec_control.h"

#include <gtest/gtest.h>

#include "base/eventually.h"
#include "sandbox/test_bed.h"

namespace atl::sandbox {
namespace {

std::shared_ptr<Exec> start_reader(TestBed& bed, Sandbox& sandbox, std::string program) {
  ExecRequest request;
  request.arguments = {std::move(program)};
  request.output_limit_bytes = limits_of(sandbox.row()).output_bytes;
  request.input_mode = agent::InputMode::kOpen;
  auto exec = bed.run(sandbox.start_exec(std::move(request), "{}"));
  ATOLL_CHECK(exec.ok());
  return *exec;
}

Task<Result<void>> write_text(ExecControl& control, std::shared_ptr<Exec> exec, std::string text) {
  ATOLL_CO_TRY(auto turn, co_await control.take_turn(exec));
  auto written = co_await control.write(*turn, text);
  co_return written;
}

std::string printed(const Exec& exec) {
  auto bytes = exec.output().read(agent::Stream::kStdout, 0, 1 << 20);
  return bytes.ok() ? *bytes : "unreadable";
}

TEST(ExecControl, InputIsSentAgainOnANewStreamAndTakenOnce) {
  TestBed bed;
  auto sandbox = bed.create();
  auto exec = start_reader(bed, *sandbox, "cat");
  ExecControl& control = sandbox->execs().control();
  ASSERT_TRUE(bed.run(write_text(control, exec, "one ")).ok());
  bed.driver->drop_stream(sandbox->id());
  ASSERT_TRUE(bed.run(write_text(control, exec, "two ")).ok());
  bed.settle();
  EXPECT_EQ(printed(*exec), "one two ");
  EXPECT_EQ(exec->input().taken, 8u);
}

TEST(ExecControl, AfterARestartTheAgentSaysHowFarInputHasGot) {
  TestBed bed;
  auto sandbox = bed.create();
  SandboxId id = sandbox->id();
  auto exec = start_reader(bed, *sandbox, "cat");
  ASSERT_TRUE(bed.run(write_text(sandbox->execs().control(), exec, "before ")).ok());
  ExecId number = exec->id();
  exec.reset();
  sandbox.reset();
  bed.restart();
  ASSERT_TRUE(bed.run(bed.sandboxes().adopt()).ok());
  sandbox = bed.sandboxes().find(store::kLocalTenant, id);
  exec = sandbox->execs().find_live(number);
  ASSERT_NE(exec, nullptr);
  ASSERT_TRUE(bed.run(write_text(sandbox->execs().control(), exec, "after")).ok());
  EXPECT_EQ(exec->input().taken, 12u);
  bed.settle();
  EXPECT_EQ(printed(*exec), "before after");
}

TEST(ExecControl, EndedExecTakesNothing) {
  TestBed bed;
  auto sandbox = bed.create();
  auto exec = start_reader(bed, *sandbox, "stubborn");
  bed.settle();
  ASSERT_TRUE(sandbox->execs().control().signal(*exec, 9).ok());
  auto written = bed.run(write_text(sandbox->execs().control(), exec, "x"));
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().reason(), "exec_not_running");
}

TEST(ExecControl, AgentThatNeverEndsAnExecLosesItsSandbox) {
  TestBed bed;
  bed.sandboxes().services().silence_grace = std::chrono::milliseconds(1);
  auto sandbox = bed.create();
  ExecRequest request;
  request.arguments = {"hang"};
  request.output_limit_bytes = 1;
  request.timeout_ms = 1;
  auto exec = bed.run(sandbox->start_exec(std::move(request), "{}"));
  ASSERT_TRUE(exec.ok());
  auto deadline = std::chrono::steady_clock::now() + test_timeout();
  ASSERT_TRUE(bed.run((*exec)->wait_ended(deadline)));
  EXPECT_EQ((*exec)->row().verdict, "sandbox_gone");
  EXPECT_EQ(sandbox->state(), State::kFailed);
  EXPECT_NE(sandbox->row().failure.find("e1"), std::string::npos);
}

}  // namespace
}  // namespace atl::sandbox
