// Pause and resume with a fake isolate: what stands still, who is refused, and what survives.
#include "sandbox/pause.h"

#include <gtest/gtest.h>

#include "base/eventually.h"
#include "sandbox/files.h"
#include "sandbox/test_bed.h"

namespace atl::sandbox {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::shared_ptr<Sandbox> create(TestBed& bed, void (*ask)(CreateSandbox&)) {
  CreateSandbox request = bed.create_request();
  ask(request);
  auto created = bed.run(bed.sandboxes().create(store::kLocalTenant, request));
  EXPECT_TRUE(created.ok());
  return created->sandbox;
}

std::shared_ptr<Sandbox> found(TestBed& bed, SandboxId id) {
  return bed.sandboxes().find(store::kLocalTenant, id);
}

TEST(Pause, FreezesAndGoesOn) {
  TestBed bed;
  auto sandbox = bed.create();
  ASSERT_TRUE(bed.run(Pause::begin(sandbox)).ok());
  EXPECT_EQ(state_name(sandbox->state()), "paused");
  EXPECT_TRUE(bed.driver->frozen.contains(sandbox->id()));
  EXPECT_TRUE(bed.run(Pause::begin(sandbox)).ok()) << "twice is once";
  ASSERT_TRUE(bed.run(Pause::end(sandbox)).ok());
  EXPECT_EQ(state_name(sandbox->state()), "running");
  EXPECT_TRUE(bed.driver->frozen.empty());
  EXPECT_TRUE(bed.run(Pause::end(sandbox)).ok()) << "twice is once";
  EXPECT_EQ(bed.run_exec(*sandbox, {"echo", "on"}).verdict, "ok");
}

TEST(Pause, RefusesWhoUsesWhatIsInside) {
  TestBed bed;
  auto sandbox = bed.create();
  ASSERT_TRUE(bed.run(Pause::begin(sandbox)).ok());
  ExecRequest request;
  request.arguments = {"echo", "x"};
  auto exec = bed.run(sandbox->start_exec(request, "{}"));
  ASSERT_FALSE(exec.ok());
  EXPECT_EQ(exec.error().reason(), "sandbox_paused");
  Files files(sandbox, "user");
  auto entry = bed.run(files.stat("/tmp"));
  ASSERT_FALSE(entry.ok());
  EXPECT_EQ(entry.error().reason(), "sandbox_paused");
}

TEST(Pause, WakesForWhoMayWakeIt) {
  TestBed bed;
  auto sandbox = create(bed, [](CreateSandbox& request) { request.auto_resume = true; });
  ASSERT_TRUE(bed.run(Pause::begin(sandbox)).ok());
  EXPECT_EQ(bed.run_exec(*sandbox, {"echo", "awake"}).verdict, "ok");
  EXPECT_EQ(sandbox->state(), State::kRunning);
  EXPECT_TRUE(bed.driver->frozen.empty());
}

TEST(Pause, StopsTheTtl) {
  TestBed bed;
  auto sandbox = create(bed, [](CreateSandbox& request) { request.ttl_ms = 10'000; });
  SandboxId id = sandbox->id();
  bed.clock.advance(seconds(4));
  ASSERT_TRUE(bed.run(Pause::begin(sandbox)).ok());
  EXPECT_FALSE(sandbox->lifetime().ends_at());
  bed.clock.advance(seconds(100));
  sweep(bed);
  ASSERT_TRUE(found(bed, id)) << "no time passes for it";
  ASSERT_TRUE(bed.run(Pause::end(sandbox)).ok());
  bed.clock.advance(milliseconds(5'900));
  sweep(bed);
  ASSERT_TRUE(found(bed, id));
  bed.clock.advance(milliseconds(200));
  sweep(bed);
  EXPECT_FALSE(found(bed, id));
}

TEST(Pause, StopsTheTtlOverARestart) {
  TestBed bed;
  auto sandbox = create(bed, [](CreateSandbox& request) { request.ttl_ms = 10'000; });
  SandboxId id = sandbox->id();
  bed.clock.advance(seconds(4));
  ASSERT_TRUE(bed.run(Pause::begin(sandbox)).ok());
  sandbox.reset();
  bed.driver->frozen.clear();  // as after a crash before the freeze
  bed.restart();
  bed.clock.advance(seconds(100));
  ASSERT_TRUE(bed.run(bed.sandboxes().adopt()).ok());
  sandbox = found(bed, id);
  ASSERT_TRUE(sandbox);
  EXPECT_EQ(sandbox->state(), State::kPaused);
  EXPECT_TRUE(bed.driver->frozen.contains(id)) << "the row says so";
  sweep(bed);
  ASSERT_TRUE(found(bed, id));
  ASSERT_TRUE(bed.run(Pause::end(sandbox)).ok());
  bed.clock.advance(milliseconds(5'900));
  sweep(bed);
  ASSERT_TRUE(found(bed, id));
  bed.clock.advance(milliseconds(200));
  sweep(bed);
  EXPECT_FALSE(found(bed, id));
}

TEST(Pause, ATtlGivenMeanwhileCountsFromTheResume) {
  TestBed bed;
  auto sandbox = create(bed, [](CreateSandbox& request) { request.ttl_ms = 10'000; });
  ASSERT_TRUE(bed.run(Pause::begin(sandbox)).ok());
  bed.clock.advance(seconds(50));
  ASSERT_TRUE(bed.run(bed.sandboxes().change(sandbox, {.ttl_ms = 2'000})).ok());
  bed.clock.advance(seconds(50));
  ASSERT_TRUE(bed.run(Pause::end(sandbox)).ok());
  auto end = sandbox->lifetime().deadline();
  ASSERT_TRUE(end);
  EXPECT_EQ(*end - bed.clock.steady_now(), seconds(2));
}

TEST(Pause, TheEndOfATtlPausesAndAResumeGivesItAnew) {
  TestBed bed;
  auto sandbox = create(bed, [](CreateSandbox& request) {
    request.ttl_ms = 10'000;
    request.on_ttl = "pause";
  });
  bed.clock.advance(milliseconds(10'001));
  sweep(bed);
  ASSERT_TRUE(found(bed, sandbox->id()));
  EXPECT_EQ(sandbox->state(), State::kPaused);
  bed.clock.advance(seconds(1000));
  ASSERT_TRUE(bed.run(Pause::end(sandbox)).ok());
  auto end = sandbox->lifetime().deadline();
  ASSERT_TRUE(end);
  EXPECT_EQ(*end - bed.clock.steady_now(), seconds(10));
}

TEST(Pause, RunsOnWhenItCannotBeFrozen) {
  TestBed bed;
  auto sandbox = bed.create();
  bed.driver->freeze_errors.push_back(Error(Code::kUnavailable, "the warden is away"));
  EXPECT_FALSE(bed.run(Pause::begin(sandbox)).ok());
  EXPECT_EQ(sandbox->state(), State::kRunning);
  EXPECT_EQ(sandbox->row().paused_at_ms, 0);
  EXPECT_EQ(bed.run_exec(*sandbox, {"echo", "on"}).verdict, "ok");
}

TEST(Pause, StaysPausedWhenItCannotBeThawed) {
  TestBed bed;
  auto sandbox = bed.create();
  ASSERT_TRUE(bed.run(Pause::begin(sandbox)).ok());
  bed.driver->freeze_errors.push_back(Error(Code::kUnavailable, "the warden is away"));
  EXPECT_FALSE(bed.run(Pause::end(sandbox)).ok());
  EXPECT_EQ(sandbox->state(), State::kPaused);
  ASSERT_TRUE(bed.run(Pause::end(sandbox)).ok());
  EXPECT_EQ(sandbox->state(), State::kRunning);
}

// Pauses a sandbox for longer than its exec may take. False when the host was so busy that the time
// was over before the pause, which says nothing about it.
bool waits_longer_for_an_exec_that_stood_still() {
  TestBed bed;
  auto sandbox = bed.create();
  bed.sandboxes().services().silence_grace = milliseconds(1);
  ExecRequest request;
  request.arguments = {"hang"};
  request.timeout_ms = 300;
  auto started = std::chrono::steady_clock::now();
  auto exec = bed.run(sandbox->start_exec(request, "{}"));
  EXPECT_TRUE(exec.ok());
  bool is_paused = bed.run(Pause::begin(sandbox)).ok();
  if (std::chrono::steady_clock::now() - started >= milliseconds(request.timeout_ms)) return false;
  EXPECT_TRUE(is_paused);
  auto until = std::chrono::steady_clock::now() + milliseconds(400);
  while (std::chrono::steady_clock::now() < until) bed.step();
  EXPECT_EQ(sandbox->state(), State::kPaused) << "its agent has no reason to end it yet";
  EXPECT_TRUE(bed.run(Pause::end(sandbox)).ok());
  EXPECT_TRUE(step_until(bed, [&] { return sandbox->state() == State::kFailed; }))
      << "and then it has";
  return true;
}

TEST(Pause, WaitsLongerForAnExecThatStoodStill) {
  EXPECT_TRUE(eventually(waits_longer_for_an_exec_that_stood_still));
}

TEST(Pause, CanBeDeletedAndListed) {
  TestBed bed;
  auto sandbox = bed.create();
  ASSERT_TRUE(bed.run(Pause::begin(sandbox)).ok());
  store::SandboxQuery paused{.state = "paused"};
  auto rows = bed.run(bed.sandboxes().list(store::kLocalTenant, paused));
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(rows->size(), 1u);
  store::SandboxQuery running{.state = "running"};
  EXPECT_TRUE(bed.run(bed.sandboxes().list(store::kLocalTenant, running))->empty());
  SandboxId id = sandbox->id();
  EXPECT_TRUE(bed.run(bed.sandboxes().remove(store::kLocalTenant, id)).ok());
  EXPECT_FALSE(found(bed, id));
}

}  // namespace
}  // namespace atl::sandbox
