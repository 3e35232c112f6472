#include "sandbox/exec_output.h"

#include <gtest/gtest.h>

#include "base/eventually.h"
#include "sandbox/test_bed.h"

namespace atl::sandbox {
namespace {

constexpr uint64_t kMoreThanThereIs = 1ull << 60;

// Copies its input to its output.
std::shared_ptr<Exec> start_copier(TestBed& bed, Sandbox& sandbox) {
  ExecRequest request;
  request.arguments = {"cat"};
  request.output_limit_bytes = limits_of(sandbox.row()).output_bytes;
  request.input_mode = agent::InputMode::kOpen;
  auto exec = bed.run(sandbox.start_exec(std::move(request), "{}"));
  ATOLL_CHECK(exec.ok());
  return *exec;
}

Task<Result<void>> print_text(ExecControl& control, std::shared_ptr<Exec> exec, std::string text) {
  ATOLL_CO_TRY(auto turn, co_await control.take_turn(exec));
  auto written = co_await control.write(*turn, text);
  co_return written;
}

Task<Result<void>> end_printing(ExecControl& control, std::shared_ptr<Exec> exec) {
  ATOLL_CO_TRY(auto turn, co_await control.take_turn(exec));
  auto ended = co_await control.end_input(*turn);
  co_return ended;
}

void print(TestBed& bed, Sandbox& sandbox, const std::shared_ptr<Exec>& exec, std::string text) {
  uint64_t taken = exec->offsets().stdout_offset + text.size();
  ASSERT_TRUE(bed.run(print_text(sandbox.execs().control(), exec, std::move(text))).ok());
  ASSERT_TRUE(step_until(bed, [&] { return exec->offsets().stdout_offset == taken; }));
}

void keep_free(TestBed& bed, uint64_t bytes) {
  bed.sandboxes().services().outputs.keep_free(bytes);
}

void expect_kept(TestBed& bed, Sandbox& sandbox, const std::shared_ptr<Exec>& exec) {
  ASSERT_TRUE(bed.run(end_printing(sandbox.execs().control(), exec)).ok());
  ASSERT_TRUE(step_until(bed, [&] { return exec->ended(); }));
  bed.settle();
  store::ExecRow row = **bed.run(sandbox.execs().find(exec->id()));
  EXPECT_EQ(row.verdict, "ok");
  EXPECT_EQ(row.limits_hit, bit(agent::LimitBit::kOutput));
  EXPECT_EQ(row.stdout_bytes, 5u);
  EXPECT_EQ(row.stdout_cut, std::string("dropped dropped too").size());
  auto opened = bed.run(sandbox.execs().open(row.id));
  EXPECT_EQ(*(*opened)->output().read(agent::Stream::kStdout, 0, 100), "kept ");
  EXPECT_TRUE(bed.run(bed.sandboxes().remove(store::kLocalTenant, sandbox.id())).ok());
}

TEST(ExecOutput, StopsWhereTheDiskMustStayFreeAndTheVerdictSaysSo) {
  TestBed bed;
  auto sandbox = bed.create();
  auto exec = start_copier(bed, *sandbox);
  print(bed, *sandbox, exec, "kept ");
  keep_free(bed, kMoreThanThereIs);
  print(bed, *sandbox, exec, "dropped ");
  EXPECT_EQ(kept_offsets(*exec).stdout_offset, 5u);
  // There may be room again: what came between is gone, so nothing may follow it.
  keep_free(bed, 0);
  print(bed, *sandbox, exec, "dropped too");
  expect_kept(bed, *sandbox, exec);
}

TEST(ExecOutput, WhatWasDroppedIsKnownAfterARestart) {
  TestBed bed;
  auto sandbox = bed.create();
  SandboxId id = sandbox->id();
  auto exec = start_copier(bed, *sandbox);
  print(bed, *sandbox, exec, "kept ");
  keep_free(bed, kMoreThanThereIs);
  print(bed, *sandbox, exec, "dropped ");
  ExecId number = exec->id();
  exec.reset();
  sandbox.reset();
  bed.restart();
  ASSERT_TRUE(bed.run(bed.sandboxes().adopt()).ok());
  sandbox = bed.sandboxes().find(store::kLocalTenant, id);
  exec = sandbox->execs().find_live(number);
  ASSERT_NE(exec, nullptr);
  EXPECT_EQ(exec->offsets().stdout_offset, 13u);
  EXPECT_EQ(kept_offsets(*exec).stdout_offset, 5u);
  print(bed, *sandbox, exec, "dropped too");
  expect_kept(bed, *sandbox, exec);
}

}  // namespace
}  // namespace atl::sandbox
