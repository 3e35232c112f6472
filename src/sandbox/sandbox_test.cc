#include "sandbox/sandbox.h"

#include <signal.h>

#include <gtest/gtest.h>

#include "agent/farewell.h"
#include "async/spawn.h"
#include "sandbox/test_bed.h"

namespace atl::sandbox {
namespace {

using std::chrono::milliseconds;

constexpr store::TenantId kTenant = store::kLocalTenant;
constexpr milliseconds kTtl{60'000};
constexpr milliseconds kIdle{10'000};

SandboxId create_idle(TestBed& bed, milliseconds idle_ttl = kIdle) {
  CreateSandbox request = bed.create_request();
  request.ttl_ms = kTtl.count();
  request.idle_ttl_ms = idle_ttl.count();
  auto created = bed.run(bed.sandboxes().create(kTenant, request));
  ATOLL_CHECK(created.ok());
  return created->sandbox->id();
}

bool lives(TestBed& bed, SandboxId id) {
  sweep(bed);
  return bed.sandboxes().find(kTenant, id) != nullptr;
}

TEST(Sandbox, IdleForItsIdleTtlIsDeleted) {
  TestBed bed;
  SandboxId id = create_idle(bed);
  bed.clock.advance(kIdle - milliseconds(1));
  EXPECT_TRUE(lives(bed, id));
  bed.clock.advance(milliseconds(1));
  EXPECT_FALSE(lives(bed, id));
  EXPECT_TRUE(bed.run(bed.driver->list())->empty());
  EXPECT_EQ(bed.admission().promised().sandboxes, 0u);
}

TEST(Sandbox, RunningExecKeepsItAliveAndItsEndStartsTheIdleTime) {
  TestBed bed;
  SandboxId id = create_idle(bed);
  auto sandbox = bed.sandboxes().find(kTenant, id);
  auto exec = bed.start_exec(*sandbox, {"hang"});
  bed.settle();
  bed.clock.advance(kIdle * 3);
  EXPECT_TRUE(lives(bed, id));
  ASSERT_TRUE(sandbox->execs().control().signal(*exec, SIGKILL).ok());
  bed.settle();
  ASSERT_TRUE(exec->ended());
  bed.clock.advance(kIdle - milliseconds(1));
  EXPECT_TRUE(lives(bed, id));
  bed.clock.advance(milliseconds(1));
  EXPECT_FALSE(lives(bed, id));
}

TEST(Sandbox, OneOfTwoExecsIsEnoughToKeepItAlive) {
  TestBed bed;
  SandboxId id = create_idle(bed);
  auto sandbox = bed.sandboxes().find(kTenant, id);
  auto exec = bed.start_exec(*sandbox, {"hang"});
  EXPECT_EQ(bed.run_exec(*sandbox, {"echo", "hi"}).verdict, "ok");
  bed.clock.advance(kIdle * 2);
  EXPECT_TRUE(lives(bed, id));
  EXPECT_FALSE(exec->ended());
}

TEST(Sandbox, TouchStartsTheIdleTimeAnew) {
  TestBed bed;
  SandboxId id = create_idle(bed);
  bed.clock.advance(kIdle - milliseconds(1));
  bed.sandboxes().find(kTenant, id)->lifetime().touch();
  bed.clock.advance(kIdle - milliseconds(1));
  EXPECT_TRUE(lives(bed, id));
  bed.clock.advance(milliseconds(1));
  EXPECT_FALSE(lives(bed, id));
}

TEST(Sandbox, TtlEndsItEvenWhileAnExecRuns) {
  TestBed bed;
  SandboxId id = create_idle(bed);
  auto exec = bed.start_exec(*bed.sandboxes().find(kTenant, id), {"hang", "so", "far"});
  bed.settle();
  bed.clock.advance(kTtl - milliseconds(1));
  EXPECT_TRUE(lives(bed, id));
  bed.clock.advance(milliseconds(1));
  EXPECT_FALSE(lives(bed, id));
  EXPECT_EQ(exec->row().verdict, "sandbox_gone");
}

TEST(Sandbox, AdoptedStartsItsIdleTimeAnewButNotItsTtl) {
  TestBed bed;
  SandboxId id = create_idle(bed);
  bed.clock.advance(kIdle - milliseconds(1));
  bed.restart();
  ASSERT_TRUE(bed.run(bed.sandboxes().adopt()).ok());
  bed.settle();
  bed.clock.advance(kIdle - milliseconds(1));
  EXPECT_TRUE(lives(bed, id));
  bed.clock.advance(milliseconds(1));
  EXPECT_FALSE(lives(bed, id));

  id = create_idle(bed, kTtl * 2);
  bed.clock.advance(kTtl - milliseconds(1));
  bed.restart();
  ASSERT_TRUE(bed.run(bed.sandboxes().adopt()).ok());
  EXPECT_TRUE(lives(bed, id));
  bed.clock.advance(milliseconds(1));
  EXPECT_FALSE(lives(bed, id));
}

TEST(Sandbox, AdoptedExecKeepsItAlive) {
  TestBed bed;
  SandboxId id = create_idle(bed);
  bed.start_exec(*bed.sandboxes().find(kTenant, id), {"hang"});
  bed.settle();
  bed.restart();
  ASSERT_TRUE(bed.run(bed.sandboxes().adopt()).ok());
  bed.settle();
  bed.clock.advance(kIdle * 2);
  EXPECT_TRUE(lives(bed, id));
}

TEST(Sandbox, EndsAtIsTheEarliestThatAppliesNow) {
  TestBed bed;
  auto sandbox = bed.sandboxes().find(kTenant, create_idle(bed));
  WallTime created = bed.clock.wall_now();
  EXPECT_EQ(sandbox->lifetime().ends_at(), created + kIdle);
  auto exec = bed.start_exec(*sandbox, {"hang"});
  bed.settle();
  EXPECT_EQ(sandbox->lifetime().ends_at(), created + kTtl);
  bed.clock.advance(kTtl - kIdle / 2);
  ASSERT_TRUE(sandbox->execs().control().signal(*exec, SIGKILL).ok());
  bed.settle();
  EXPECT_EQ(sandbox->lifetime().ends_at(), created + kTtl);  // sooner than its idle end
}

TEST(Sandbox, WithoutIdleTtlOnlyTheTtlCounts) {
  TestBed bed;
  auto sandbox = bed.create();
  EXPECT_EQ(sandbox->lifetime().ends_at(), bed.clock.wall_now() + std::chrono::minutes(5));
  bed.clock.advance(std::chrono::minutes(5) - milliseconds(1));
  EXPECT_TRUE(lives(bed, sandbox->id()));
}

TEST(Sandbox, NextSweepIsAtTheNextDeadline) {
  TestBed bed;
  SteadyTime begin = bed.clock.steady_now();
  EXPECT_GE(bed.sandboxes().next_due(), begin + std::chrono::minutes(1));
  auto sandbox = bed.sandboxes().find(kTenant, create_idle(bed));
  EXPECT_EQ(bed.sandboxes().next_due(), begin + kIdle);
  // Busy: not before it could have been idle for long enough.
  auto exec = bed.start_exec(*sandbox, {"hang"});
  bed.settle();
  bed.clock.advance(milliseconds(3000));
  EXPECT_EQ(bed.sandboxes().next_due(), begin + milliseconds(3000) + kIdle);
  // Past its deadline, or left over: soon, but not at once again and again.
  bed.clock.advance(kTtl);
  SteadyTime now = bed.clock.steady_now();
  EXPECT_GT(bed.sandboxes().next_due(), now);
  EXPECT_LE(bed.sandboxes().next_due(), now + std::chrono::seconds(1));
  bed.driver->remove_error = Error(Code::kUnavailable, "the warden is away");
  sweep(bed);
  EXPECT_LE(bed.sandboxes().next_due(), now + std::chrono::seconds(1));
  bed.driver->remove_error = std::nullopt;
  EXPECT_FALSE(lives(bed, sandbox->id()));
}

// Nothing else would wake it before minutes have passed.
TEST(Sandbox, SleepingSweepIsWokenByWhatComesSooner) {
  TestBed bed;
  int woken = 0;
  auto sleep = [&]() -> Task<void> {
    co_await bed.sandboxes().wait_due();
    ++woken;
  };
  auto fall_asleep = [&] {
    // detached: owned by this test, which waits for its end
    spawn(bed.context().get_executor(), sleep());
    bed.settle();
  };
  auto sleep_until_woken = [&](int times) {
    EXPECT_TRUE(step_until(bed, [&] { return woken >= times; }));
    EXPECT_EQ(woken, times);
  };
  auto sandbox = bed.create();
  fall_asleep();
  EXPECT_EQ(woken, 0);
  SandboxId sooner = create_idle(bed);
  sleep_until_woken(1);

  fall_asleep();
  bed.driver->kill_agent(sandbox->id());
  sleep_until_woken(2);
  sweep(bed);
  EXPECT_EQ(bed.run(bed.driver->list())->size(), 1u);

  fall_asleep();
  bed.driver->remove_error = Error(Code::kUnavailable, "the warden is away");
  EXPECT_FALSE(bed.run(bed.sandboxes().remove(kTenant, sooner)).ok());
  sleep_until_woken(3);
  bed.driver->remove_error = std::nullopt;
  sweep(bed);
  EXPECT_TRUE(bed.run(bed.driver->list())->empty());
}

TEST(Sandbox, WhatWasEndedForItsMemorySaysSoOfItsExecs) {
  TestBed bed;
  SandboxId id = create_idle(bed);
  auto sandbox = bed.sandboxes().find(kTenant, id);
  auto exec = bed.start_exec(*sandbox, {"hang"});
  bed.driver->farewell = agent::encode(
      agent::Farewell{.version = agent::kProtocolVersion, .cause = agent::Cause::kMemory});
  bed.driver->drop_stream(id);
  bed.settle();
  EXPECT_EQ(sandbox->state(), State::kFailed);
  EXPECT_EQ(exec->row().verdict, "oom");
  EXPECT_EQ(exec->row().limits_hit, agent::bit(agent::LimitBit::kMemory));
  EXPECT_EQ(exec->row().failure, "what ran the sandbox was ended at its memory limit");
}

std::shared_ptr<Sandbox> create_behind_gvisor(TestBed& bed) {
  std::string folder = bed.directory() + "/templates/gvisor";
  std::filesystem::create_directories(folder);
  ATOLL_CHECK(replace_file(folder + "/template.toml",
                           "name = \"gvisor\"\nkind = \"monitor\"\n[image]\n"
                           "debian = { suite = \"bookworm\", packages = [\"a-package\"] }\n",
                           0644)
                  .ok());
  ATOLL_CHECK(replace_file(folder + "/image", std::string(64, 'c') + "\n", 0644).ok());
  CreateSandbox request = bed.create_request();
  request.isolation = store::Isolation::kGvisor;
  auto created = bed.run(bed.sandboxes().create(kTenant, request));
  ATOLL_CHECK(created.ok());
  return created->sandbox;
}

// The keeper that would have told may have been killed as well, or nobody came in time.
TEST(Sandbox, KillsForMemoryBehindGvisorAreCountedWhenNobodyTellsOfThem) {
  TestBed bed;
  auto sandbox = create_behind_gvisor(bed);
  auto exec = bed.start_exec(*sandbox, {"hang"});
  bed.settle();
  bed.driver->used[sandbox->id()].memory_kills = 1;
  bed.driver->kill_agent(sandbox->id());
  bed.settle();
  EXPECT_EQ(sandbox->state(), State::kFailed);
  EXPECT_EQ(exec->row().verdict, "oom");
  EXPECT_EQ(exec->row().limits_hit, agent::bit(agent::LimitBit::kMemory));
  EXPECT_EQ(exec->row().failure, "what ran the sandbox was ended at its memory limit");
}

TEST(Sandbox, WithoutAKillForMemoryBehindGvisorItIsGone) {
  TestBed bed;
  auto sandbox = create_behind_gvisor(bed);
  auto exec = bed.start_exec(*sandbox, {"hang"});
  bed.settle();
  bed.driver->kill_agent(sandbox->id());
  bed.settle();
  EXPECT_EQ(exec->row().verdict, "sandbox_gone");
  // Behind the jail a kill ends one exec, and says nothing of the agent's end.
  auto jailed = bed.create();
  exec = bed.start_exec(*jailed, {"hang"});
  bed.settle();
  bed.driver->used[jailed->id()].memory_kills = 1;
  bed.driver->kill_agent(jailed->id());
  bed.settle();
  EXPECT_EQ(exec->row().verdict, "sandbox_gone");
}

TEST(Sandbox, SaysThatItWasEndedForTheKernelsMemory) {
  TestBed bed;
  auto sandbox = bed.create();
  auto exec = bed.start_exec(*sandbox, {"hang"});
  bed.settle();
  bed.driver->used[sandbox->id()].ended_for_kernel_memory = 1;
  bed.driver->kill_agent(sandbox->id());
  bed.settle();
  EXPECT_EQ(sandbox->state(), State::kFailed);
  EXPECT_TRUE(sandbox->row().failure.starts_with("kernel_memory: ")) << sandbox->row().failure;
  EXPECT_EQ(exec->row().verdict, "sandbox_gone");
}

TEST(Sandbox, AgentOfThePreviousVersionIsSpokenTo) {
  TestBed bed;
  bed.driver->spoken_version = agent::kOldestProtocolVersion;
  SandboxId id = create_idle(bed);
  EXPECT_EQ(bed.run_exec(*bed.sandboxes().find(kTenant, id), {"echo", "hi"}).verdict, "ok");
  bed.restart();
  ASSERT_TRUE(bed.run(bed.sandboxes().adopt()).ok());
  bed.settle();
  EXPECT_EQ(bed.run_exec(*bed.sandboxes().find(kTenant, id), {"echo", "hi"}).verdict, "ok");
}

TEST(Sandbox, AgentThatIsTooOldOrTooNewFailsItByBothVersions) {
  for (int version : {agent::kOldestProtocolVersion - 1, agent::kProtocolVersion + 1}) {
    TestBed bed;
    SandboxId id = create_idle(bed);
    auto sandbox = bed.sandboxes().find(kTenant, id);
    auto exec = bed.start_exec(*sandbox, {"hang"});
    bed.driver->spoken_version = static_cast<uint16_t>(version);
    bed.driver->drop_stream(id);
    bed.settle();
    EXPECT_EQ(sandbox->state(), State::kFailed);
    EXPECT_EQ(sandbox->row().failure, "the agent speaks protocol version " +
                                          std::to_string(version) + ", this atolld 1 to 2");
    EXPECT_EQ(exec->row().verdict, "sandbox_gone");
  }
}

}  // namespace
}  // namespace atl::sandbox
