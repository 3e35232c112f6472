#include "sandbox/sandboxes.h"

#include <signal.h>

#include <gtest/gtest.h>

#include "async/spawn.h"
#include "sandbox/test_bed.h"

namespace atl::sandbox {
namespace {

constexpr store::TenantId kTenant = store::kLocalTenant;

std::string all_output(TestBed& bed, Sandbox& sandbox, ExecId id) {
  auto exec = bed.run(sandbox.execs().open(id));
  auto bytes = (*exec)->output().read(agent::Stream::kStdout, 0, 64 << 20);
  EXPECT_TRUE(bytes.ok());
  return *bytes;
}

std::string spam(size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += isolate::spam_byte(i);
  return text;
}

TEST(Sandboxes, CreatedIsRunningAndListed) {
  TestBed bed;
  auto sandbox = bed.create();
  EXPECT_EQ(sandbox->state(), State::kRunning);
  auto rows = bed.run(bed.sandboxes().list(kTenant, {}));
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(rows->size(), 1u);
  EXPECT_EQ(rows->front().id, sandbox->id());
  EXPECT_EQ(rows->front().state, "running");
}

TEST(Sandboxes, LimitsComeFromTheRequestElseFromTheTemplate) {
  TestBed bed;
  CreateSandbox request = bed.create_request();
  request.memory_bytes = 64 << 20;
  auto created = bed.run(bed.sandboxes().create(kTenant, request));
  ASSERT_TRUE(created.ok());
  EXPECT_EQ(limits_of(created->sandbox->row()).wall.memory_bytes, 64u << 20);
  EXPECT_EQ(limits_of(created->sandbox->row()).wall.pids, 256u);
}

TEST(Sandboxes, EveryLimitReachesTheDriver) {
  TestBed bed;
  CreateSandbox request = bed.create_request();
  request.cpu_millis = 500;
  request.pids = 9;
  request.disk_bytes = 2 << 20;
  request.open_files = 99;
  request.disk_bytes_per_second = 1 << 20;
  request.on_oom = isolate::OnOom::kEndSandbox;
  request.required_extras = static_cast<uint32_t>(isolate::Extra::kLandlock);
  auto created = bed.run(bed.sandboxes().create(kTenant, request));
  ASSERT_TRUE(created.ok());
  SandboxId id = created->sandbox->id();
  isolate::WallLimits asked = bed.driver->limits(id);
  EXPECT_EQ(asked.cpu_millis, 500u);
  EXPECT_EQ(asked.memory_bytes, 512u << 20);
  EXPECT_EQ(asked.pids, 9u);
  EXPECT_EQ(asked.disk_bytes, 2u << 20);
  EXPECT_EQ(asked.open_files, 99u);
  EXPECT_EQ(asked.disk_bytes_per_second, 1u << 20);
  EXPECT_EQ(asked.on_oom, isolate::OnOom::kEndSandbox);
  EXPECT_EQ(asked.required_extras, static_cast<uint32_t>(isolate::Extra::kLandlock));
  // And they are the same to an atolld that takes it up.
  created->sandbox.reset();
  bed.restart();
  ASSERT_TRUE(bed.run(bed.sandboxes().adopt()).ok());
  const Limits& kept = limits_of(bed.sandboxes().find(kTenant, id)->row());
  EXPECT_EQ(kept.wall.open_files, 99u);
  EXPECT_EQ(kept.wall.disk_bytes_per_second, 1u << 20);
  EXPECT_EQ(kept.wall.on_oom, isolate::OnOom::kEndSandbox);
  EXPECT_EQ(kept.wall.required_extras, asked.required_extras);
}

TEST(Sandboxes, UnknownTemplateIsRefusedAndNothingIsLeft) {
  TestBed bed;
  CreateSandbox request;
  request.template_name = "cobol";
  auto created = bed.run(bed.sandboxes().create(kTenant, request));
  ASSERT_FALSE(created.ok());
  EXPECT_EQ(created.error().reason(), "template_not_found");
  EXPECT_EQ(bed.admission().promised().sandboxes, 0u);
  EXPECT_EQ(bed.sandboxes().all().size(), 0u);
}

TEST(Sandboxes, FailedLaunchLeavesNoRowAndNoReservation) {
  TestBed bed;
  bed.driver->next_launch_error = Error(Code::kUnavailable, "no luck");
  auto created = bed.run(bed.sandboxes().create(kTenant, bed.create_request()));
  ASSERT_FALSE(created.ok());
  EXPECT_EQ(bed.admission().promised().sandboxes, 0u);
  EXPECT_TRUE(bed.run(bed.sandboxes().list(kTenant, {}))->empty());
}

TEST(Sandboxes, BudgetIsKeptAndGivenBack) {
  TestBed bed;
  std::vector<std::shared_ptr<Sandbox>> held;
  for (size_t i = 0; i < bed.budget.sandboxes; ++i) held.push_back(bed.create());
  auto refused = bed.run(bed.sandboxes().create(kTenant, bed.create_request()));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().reason(), "no_capacity");
  ASSERT_TRUE(bed.run(bed.sandboxes().remove(kTenant, held[0]->id())).ok());
  EXPECT_TRUE(bed.run(bed.sandboxes().create(kTenant, bed.create_request())).ok());
}

TEST(Sandboxes, AnotherTenantSeesNothing) {
  TestBed bed;
  auto sandbox = bed.create();
  store::TenantId other = *store::TenantId::from_number(2);
  EXPECT_EQ(bed.sandboxes().find(other, sandbox->id()), nullptr);
  EXPECT_EQ(bed.run(bed.sandboxes().remove(other, sandbox->id())).error().code(), Code::kNotFound);
  EXPECT_TRUE(bed.run(bed.sandboxes().list(other, {}))->empty());
}

TEST(Sandboxes, ExecEndsWithItsVerdict) {
  TestBed bed;
  auto sandbox = bed.create();
  EXPECT_EQ(bed.run_exec(*sandbox, {"echo", "hi"}).verdict, "ok");
  store::ExecRow failed = bed.run_exec(*sandbox, {"exit", "3"});
  EXPECT_EQ(failed.verdict, "nonzero");
  EXPECT_EQ(failed.exit_code, 3);
  EXPECT_EQ(all_output(bed, *sandbox, *ExecId::from_number(1)), "hi\n");
}

TEST(Sandboxes, SignalledExecIsKilled) {
  TestBed bed;
  auto sandbox = bed.create();
  auto exec = bed.start_exec(*sandbox, {"hang"});
  bed.settle();
  ASSERT_TRUE(sandbox->execs().control().signal(*exec, SIGKILL).ok());
  bed.settle();
  EXPECT_TRUE(exec->ended());
  EXPECT_EQ(exec->row().verdict, "killed");
  EXPECT_EQ(sandbox->execs().control().signal(*exec, SIGKILL).error().reason(), "exec_not_running");
}

TEST(Sandboxes, BrokenStreamIsTakenUpAndLosesNothing) {
  TestBed bed;
  auto sandbox = bed.create();
  auto exec = bed.start_exec(*sandbox, {"hang"});
  bed.settle();
  bed.driver->drop_stream(sandbox->id());
  EXPECT_EQ(bed.run_exec(*sandbox, {"spam", "300000"}).verdict, "ok");
  EXPECT_EQ(all_output(bed, *sandbox, *ExecId::from_number(2)), spam(300000));
  EXPECT_FALSE(exec->ended());
}

TEST(Sandboxes, RestartTakesUpRunningExecs) {
  TestBed bed;
  SandboxId id = bed.create()->id();
  auto sandbox = bed.sandboxes().find(kTenant, id);
  ExecId hanging = bed.start_exec(*sandbox, {"hang"})->id();
  bed.settle();
  sandbox.reset();
  bed.restart();
  ASSERT_TRUE(bed.run(bed.sandboxes().adopt()).ok());
  bed.settle();
  sandbox = bed.sandboxes().find(kTenant, id);
  ASSERT_NE(sandbox, nullptr);
  EXPECT_EQ(sandbox->state(), State::kRunning);
  EXPECT_EQ(bed.admission().promised().sandboxes, 1u);
  auto exec = sandbox->execs().find_live(hanging);
  ASSERT_NE(exec, nullptr);
  ASSERT_TRUE(sandbox->execs().control().signal(*exec, SIGTERM).ok());
  bed.settle();
  EXPECT_EQ(exec->row().verdict, "killed");
}

TEST(Sandboxes, ExecThatTheAgentNeverSawIsAPlatformErrorAfterRestart) {
  TestBed bed;
  SandboxId id = bed.create()->id();
  auto insert = [id](store::Catalog& catalog) {
    return catalog.execs().insert(kTenant, id, "{}", 1);
  };
  auto number = bed.run(bed.ledger().run(insert));
  ASSERT_TRUE(number.ok());
  bed.restart();
  ASSERT_TRUE(bed.run(bed.sandboxes().adopt()).ok());
  bed.settle();
  auto row = bed.run(bed.sandboxes().find(kTenant, id)->execs().find(*number));
  ASSERT_TRUE(row.ok() && row->has_value());
  EXPECT_EQ((*row)->verdict, "platform_error");
}

TEST(Sandboxes, RestartRemovesIsolatesThatNoRowKnows) {
  TestBed bed;
  isolate::LaunchSpec spec{SandboxId::draw(), *Digest::parse(std::string(64, 'a')), {}, {}};
  ASSERT_TRUE(bed.run(bed.driver->launch(spec)).ok());
  bed.restart();
  ASSERT_TRUE(bed.run(bed.sandboxes().adopt()).ok());
  EXPECT_TRUE(bed.run(bed.driver->list())->empty());
}

TEST(Sandboxes, AdoptionThatFailedGoesOnWhereItWas) {
  TestBed bed;
  SandboxId id = bed.create()->id();
  isolate::LaunchSpec spec{SandboxId::draw(), *Digest::parse(std::string(64, 'a')), {}, {}};
  ASSERT_TRUE(bed.run(bed.driver->launch(spec)).ok());
  bed.restart();
  bed.driver->remove_error = Error(Code::kUnavailable, "the warden is away");
  EXPECT_FALSE(bed.run(bed.sandboxes().adopt()).ok());
  bed.driver->remove_error = std::nullopt;
  ASSERT_TRUE(bed.run(bed.sandboxes().adopt()).ok());
  bed.settle();
  EXPECT_EQ(bed.admission().promised().sandboxes, 1u);
  auto sandbox = bed.sandboxes().find(kTenant, id);
  ASSERT_NE(sandbox, nullptr);
  EXPECT_EQ(bed.run_exec(*sandbox, {"echo", "hi"}).verdict, "ok");
  EXPECT_EQ(bed.run(bed.driver->list())->size(), 1u);
}

TEST(Sandboxes, RestartFinishesADeletionThatWasBegun) {
  TestBed bed;
  SandboxId id = bed.create()->id();
  bed.driver->remove_error = Error(Code::kUnavailable, "the warden is away");
  EXPECT_FALSE(bed.run(bed.sandboxes().remove(kTenant, id)).ok());
  bed.driver->remove_error = std::nullopt;
  bed.restart();
  ASSERT_TRUE(bed.run(bed.sandboxes().adopt()).ok());
  EXPECT_EQ(bed.sandboxes().find(kTenant, id), nullptr);
  EXPECT_TRUE(bed.run(bed.driver->list())->empty());
}

TEST(Sandboxes, SweepRepeatsADeletionThatFailed) {
  TestBed bed;
  SandboxId id = bed.create()->id();
  bed.driver->remove_error = Error(Code::kUnavailable, "the warden is away");
  EXPECT_FALSE(bed.run(bed.sandboxes().remove(kTenant, id)).ok());
  EXPECT_NE(bed.sandboxes().find(kTenant, id), nullptr);
  bed.driver->remove_error = std::nullopt;
  sweep(bed);
  EXPECT_EQ(bed.sandboxes().find(kTenant, id), nullptr);
  EXPECT_EQ(bed.admission().promised().sandboxes, 0u);
}

TEST(Sandboxes, DeadAgentFailsTheSandboxAndEndsItsExecs) {
  TestBed bed;
  auto sandbox = bed.create();
  auto exec = bed.start_exec(*sandbox, {"hang"});
  bed.settle();
  bed.driver->kill_agent(sandbox->id());
  bed.settle();
  EXPECT_EQ(sandbox->state(), State::kFailed);
  EXPECT_EQ(exec->row().verdict, "sandbox_gone");
  ExecRequest request;
  request.arguments = {"echo"};
  auto refused = bed.run(sandbox->start_exec(request, "{}"));
  EXPECT_EQ(refused.error().reason(), "sandbox_not_running");
}

TEST(Sandboxes, HostileAgentIsGivenUp) {
  TestBed bed;
  auto sandbox = bed.create();
  for (int i = 0; i < 40 && sandbox->state() == State::kRunning; ++i) {
    bed.driver->inject(sandbox->id(), std::string(64, '\xff'));
    bed.settle();
  }
  EXPECT_EQ(sandbox->state(), State::kFailed);
}

TEST(Sandboxes, AgentThatInventsOutputIsCutOff) {
  TestBed bed;
  auto sandbox = bed.create();
  auto exec = bed.start_exec(*sandbox, {"hang"});
  bed.settle();
  agent::Output lie{agent::Stream::kStdout, 1000, "x"};
  bed.driver->inject(sandbox->id(), agent::encode(exec->id().number(), lie));
  bed.settle();
  EXPECT_EQ(all_output(bed, *sandbox, exec->id()), "");
}

TEST(Sandboxes, TtlEndsTheSandbox) {
  TestBed bed;
  CreateSandbox request = bed.create_request();
  request.ttl_ms = 1000;
  auto created = bed.run(bed.sandboxes().create(kTenant, request));
  ASSERT_TRUE(created.ok());
  SandboxId id = created->sandbox->id();
  bed.clock.advance(std::chrono::milliseconds(999));
  sweep(bed);
  EXPECT_NE(bed.sandboxes().find(kTenant, id), nullptr);
  bed.clock.advance(std::chrono::milliseconds(1));
  sweep(bed);
  EXPECT_EQ(bed.sandboxes().find(kTenant, id), nullptr);
}

TEST(Sandboxes, DeletedWhileItIsCreatedLeavesNoIsolate) {
  TestBed bed;
  bed.driver->launch_time = std::chrono::milliseconds(50);
  std::optional<Result<Created>> created;
  auto create = [&]() -> Task<void> {
    created = co_await bed.sandboxes().create(kTenant, bed.create_request());
  };
  // detached: owned by this test, which waits for it
  spawn(bed.context().get_executor(), create());
  while (bed.sandboxes().all().empty()) bed.step();
  SandboxId id = bed.sandboxes().all().begin()->first;
  ASSERT_TRUE(bed.run(bed.sandboxes().remove(kTenant, id)).ok());
  while (!created) bed.step();
  EXPECT_FALSE(created->ok());
  auto left = bed.run(bed.driver->list());
  ASSERT_TRUE(left.ok());
  EXPECT_TRUE(left->empty());
  EXPECT_EQ(bed.sandboxes().find(kTenant, id), nullptr);
}

TEST(Sandboxes, DeletedWhileAnExecRunsEndsIt) {
  TestBed bed;
  auto sandbox = bed.create();
  auto exec = bed.start_exec(*sandbox, {"hang"});
  bed.settle();
  ASSERT_TRUE(bed.run(bed.sandboxes().remove(kTenant, sandbox->id())).ok());
  EXPECT_EQ(exec->row().verdict, "sandbox_gone");
  EXPECT_FALSE(std::filesystem::exists(bed.directory() + "/outputs/" + sandbox->id().string()));
}

}  // namespace
}  // namespace atl::sandbox
