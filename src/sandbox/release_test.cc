// Pauses that keep files and no memory, with a fake isolate.
#include <gtest/gtest.h>

#include "sandbox/fork.h"
#include "sandbox/not_carried.h"
#include "sandbox/pause.h"
#include "sandbox/snapshots.h"
#include "sandbox/test_bed.h"

namespace atl::sandbox {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

class ReleaseTest : public testing::Test {
 protected:
  std::shared_ptr<Sandbox> create(uint64_t files_only_after_ms = 10'000, bool auto_resume = false) {
    CreateSandbox request = bed_.create_request();
    if (files_only_after_ms != 0) request.files_only_after_ms = files_only_after_ms;
    request.auto_resume = auto_resume;
    auto created = bed_.run(bed_.sandboxes().create(store::kLocalTenant, std::move(request)));
    EXPECT_TRUE(created.ok());
    files(created->sandbox->id())["/tmp/a"] = "files";
    return created->sandbox;
  }
  // Paused for so long that only its files are left.
  SandboxId create_released(bool auto_resume = false) {
    auto sandbox = create(10'000, auto_resume);
    EXPECT_TRUE(bed_.run(Pause::begin(sandbox)).ok());
    bed_.clock.advance(seconds(11));
    sweep(bed_);
    EXPECT_TRUE(find(sandbox->id())->row().released);
    return sandbox->id();
  }
  std::map<std::string, std::string>& files(SandboxId id) {
    return bed_.driver->files(id).contents();
  }
  std::shared_ptr<Sandbox> find(SandboxId id) {
    return bed_.sandboxes().find(store::kLocalTenant, id);
  }
  bool has_isolate(SandboxId id) {
    auto all = bed_.run(bed_.driver->list()).value();
    return std::find(all.begin(), all.end(), id) != all.end();
  }
  uint64_t promised_memory() { return bed_.admission().promised().memory_bytes; }
  void restart() {
    bed_.restart();
    ASSERT_TRUE(bed_.run(bed_.sandboxes().adopt()).ok());
    bed_.settle();
  }
  void expect_comes_back(SandboxId id) {
    auto resumed = bed_.run(Pause::end(find(id)));
    ASSERT_TRUE(resumed.ok()) << resumed.error().message();
    EXPECT_EQ(find(id)->state(), State::kRunning);
    EXPECT_FALSE(find(id)->row().released);
    EXPECT_EQ(files(id).at("/tmp/a"), "files");
    EXPECT_EQ(bed_.run_exec(*find(id), {"echo", "again"}).verdict, "ok");
  }

  TestBed bed_;
};

TEST_F(ReleaseTest, GivesMemoryBackInTimeAndComesBackWithItsFiles) {
  auto sandbox = create();
  SandboxId id = sandbox->id();
  uint64_t memory = promised_memory();
  ExecId exec = bed_.start_exec(*sandbox, {"hang"})->id();
  ASSERT_TRUE(bed_.run(Pause::begin(sandbox)).ok());
  bed_.clock.advance(milliseconds(9'900));
  sweep(bed_);
  EXPECT_FALSE(find(id)->row().released);
  EXPECT_TRUE(bed_.driver->frozen.contains(id));
  EXPECT_LE(bed_.sandboxes().next_due(), bed_.clock.steady_now() + milliseconds(100));
  bed_.clock.advance(milliseconds(200));
  sweep(bed_);
  auto rests = find(id);
  ASSERT_TRUE(rests->row().released);
  EXPECT_EQ(rests->state(), State::kPaused);
  EXPECT_FALSE(has_isolate(id));
  EXPECT_EQ(promised_memory(), 0u);
  auto lost = decode_not_carried(*rests->row().released);
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].what, NotCarried::What::kExec);
  EXPECT_EQ(lost[0].id, exec.string());
  auto ended = bed_.run(rests->execs().find(exec));
  ASSERT_TRUE(ended.ok() && *ended);
  EXPECT_EQ((*ended)->verdict, "sandbox_gone");
  expect_comes_back(id);
  EXPECT_EQ(find(id)->row().generation, 2u);
  EXPECT_EQ(promised_memory(), memory);
  EXPECT_NE(bed_.start_exec(*find(id), {"hang"})->id(), exec) << "numbers are used once";
}

TEST_F(ReleaseTest, NeverWithoutLeave) {
  auto sandbox = create(0);
  ASSERT_TRUE(bed_.run(Pause::begin(sandbox)).ok());
  bed_.clock.advance(hours(10'000));
  sweep(bed_);
  EXPECT_EQ(find(sandbox->id()), sandbox);
  EXPECT_TRUE(bed_.driver->frozen.contains(sandbox->id()));
  // Leave that is given during the pause counts from its beginning.
  ASSERT_TRUE(bed_.run(bed_.sandboxes().change(sandbox, {.files_only_after_ms = 1'000})).ok());
  sweep(bed_);
  EXPECT_TRUE(find(sandbox->id())->row().released);
}

TEST_F(ReleaseTest, TheEndOfATtlPausesFirst) {
  auto sandbox = create();
  SandboxId id = sandbox->id();
  ASSERT_TRUE(
      bed_.run(bed_.sandboxes().change(sandbox, {.ttl_ms = 5'000, .on_ttl = "pause"})).ok());
  bed_.clock.advance(seconds(6));
  sweep(bed_);
  EXPECT_EQ(find(id)->state(), State::kPaused);
  EXPECT_FALSE(find(id)->row().released);
  bed_.clock.advance(seconds(11));
  sweep(bed_);
  EXPECT_TRUE(find(id)->row().released);
  expect_comes_back(id);
  auto end = find(id)->lifetime().deadline();
  ASSERT_TRUE(end);
  EXPECT_EQ(*end - bed_.clock.steady_now(), seconds(5)) << "it was up, and begins anew";
}

TEST_F(ReleaseTest, UseIsRefusedOrWakes) {
  auto refused = find(create_released());
  ExecRequest request;
  request.arguments = {"echo", "x"};
  auto exec = bed_.run(refused->start_exec(request, "{}"));
  ASSERT_FALSE(exec.ok());
  EXPECT_EQ(exec.error().reason(), "sandbox_paused");
  auto woken = find(create_released(true));
  EXPECT_EQ(bed_.run_exec(*woken, {"echo", "awake"}).verdict, "ok");
  EXPECT_EQ(woken->state(), State::kRunning);
}

TEST_F(ReleaseTest, IsKeptAndForkedWithoutAnIsolate) {
  SandboxId id = create_released();
  Snapshots snapshots(bed_.sandboxes(), bed_.admission());
  auto kept = bed_.run(snapshots.cut(find(id), {}));
  ASSERT_TRUE(kept.ok()) << kept.error().message();
  EXPECT_EQ(bed_.driver->snapshots.at(kept->row.id).contents().at("/tmp/a"), "files");
  EXPECT_EQ(kept->row.bytes, 5u);
  auto forked = bed_.run(fork_sandbox(bed_.sandboxes(), snapshots, find(id), {.count = 2}));
  ASSERT_TRUE(forked.ok()) << forked.error().message();
  for (const auto& child : forked->sandboxes) {
    EXPECT_EQ(child->state(), State::kRunning);
    EXPECT_EQ(files(child->id()).at("/tmp/a"), "files");
  }
  EXPECT_EQ(bed_.driver->snapshots.size(), 1u) << "a fork keeps none";
  EXPECT_FALSE(has_isolate(id));
  EXPECT_EQ(find(id)->state(), State::kPaused);
  files(forked->sandboxes[0]->id())["/tmp/a"] = "other";
  expect_comes_back(id);
}

TEST_F(ReleaseTest, IsKeptWhenItsIsolateHasEnded) {
  auto sandbox = create();
  SandboxId id = sandbox->id();
  ASSERT_TRUE(bed_.run(Pause::begin(sandbox)).ok());
  sandbox.reset();
  bed_.clock.advance(seconds(11));
  bed_.driver->remove_error = Error(Code::kUnavailable, "the warden is away");
  sweep(bed_);
  Snapshots snapshots(bed_.sandboxes(), bed_.admission());
  EXPECT_FALSE(bed_.run(snapshots.cut(find(id), {})).ok());
  EXPECT_TRUE(bed_.driver->snapshots.empty());
  bed_.driver->remove_error.reset();
  ASSERT_TRUE(bed_.run(snapshots.cut(find(id), {})).ok());
  EXPECT_FALSE(has_isolate(id));
  EXPECT_EQ(promised_memory(), 0u);
  expect_comes_back(id);
}

TEST_F(ReleaseTest, ItsLimitsMayChangeMeanwhile) {
  SandboxId id = create_released();
  ASSERT_TRUE(bed_.run(bed_.sandboxes().change(find(id), {.memory_bytes = 1ull << 30})).ok());
  EXPECT_EQ(promised_memory(), 0u);
  expect_comes_back(id);
  EXPECT_EQ(bed_.driver->limits(id).memory_bytes, 1ull << 30);
  EXPECT_EQ(promised_memory(), 1ull << 30);
}

TEST_F(ReleaseTest, OutlivesAtolldAndTheMachine) {
  SandboxId id = create_released();
  restart();
  EXPECT_EQ(find(id)->state(), State::kPaused);
  EXPECT_EQ(promised_memory(), 0u);
  bed_.driver->lose_power();
  restart();
  EXPECT_EQ(find(id)->state(), State::kPaused);
  expect_comes_back(id);
  // From here on it is as ephemeral as it was, and leaves nothing.
  bed_.driver->lose_power();
  restart();
  EXPECT_EQ(find(id)->state(), State::kFailed);
  ASSERT_TRUE(bed_.run(bed_.sandboxes().remove(store::kLocalTenant, id)).ok());
  EXPECT_TRUE(bed_.driver->kept.empty());
}

TEST_F(ReleaseTest, WhatWasBegunIsEndedByTheSweepOrTheNextStart) {
  for (bool restarts : {false, true}) {
    auto sandbox = create();
    SandboxId id = sandbox->id();
    ASSERT_TRUE(bed_.run(Pause::begin(sandbox)).ok());
    sandbox.reset();
    bed_.clock.advance(seconds(11));
    bed_.driver->remove_error = Error(Code::kUnavailable, "the warden is away");
    sweep(bed_);
    EXPECT_TRUE(find(id)->row().released);
    EXPECT_TRUE(has_isolate(id));
    EXPECT_NE(promised_memory(), 0u) << "it is not back yet";
    bed_.driver->remove_error.reset();
    if (restarts)
      restart();
    else
      sweep(bed_);
    EXPECT_FALSE(has_isolate(id));
    EXPECT_EQ(promised_memory(), 0u);
    expect_comes_back(id);
    ASSERT_TRUE(bed_.run(bed_.sandboxes().remove(store::kLocalTenant, id)).ok());
  }
}

TEST_F(ReleaseTest, AStartThatDiedIsUndone) {
  SandboxId id = create_released();
  // As after the launch of a resume whose row was not stored.
  isolate::LaunchSpec spec{id, find(id)->row().image, {}, {}};
  ASSERT_TRUE(bed_.run(bed_.driver->launch(spec)).ok());
  restart();
  EXPECT_EQ(find(id)->state(), State::kPaused);
  EXPECT_FALSE(has_isolate(id));
  expect_comes_back(id);
}

TEST_F(ReleaseTest, AFailedStartLeavesItPausedWithItsFiles) {
  SandboxId id = create_released();
  bed_.driver->next_launch_error = Error(Code::kUnavailable, "no").with_reason("isolate_failed");
  auto resumed = bed_.run(Pause::end(find(id)));
  ASSERT_FALSE(resumed.ok());
  EXPECT_EQ(resumed.error().reason(), "isolate_failed");
  EXPECT_EQ(find(id)->state(), State::kPaused);
  EXPECT_EQ(promised_memory(), 0u);
  expect_comes_back(id);
}

TEST_F(ReleaseTest, WhatTheHostCannotPromiseStaysPaused) {
  SandboxId id = create_released();
  CreateSandbox large = bed_.create_request();
  large.memory_bytes = bed_.budget.memory_bytes;
  auto other = bed_.run(bed_.sandboxes().create(store::kLocalTenant, large));
  ASSERT_TRUE(other.ok()) << "its memory is free for others";
  auto resumed = bed_.run(Pause::end(find(id)));
  ASSERT_FALSE(resumed.ok());
  EXPECT_EQ(resumed.error().reason(), "no_capacity");
  EXPECT_EQ(find(id)->state(), State::kPaused);
  ASSERT_TRUE(bed_.run(bed_.sandboxes().remove(store::kLocalTenant, other->sandbox->id())).ok());
  expect_comes_back(id);
}

TEST_F(ReleaseTest, FilesThatAreGoneAreNeverReplacedByNone) {
  SandboxId id = create_released();
  bed_.driver->kept.clear();
  EXPECT_FALSE(bed_.run(Pause::end(find(id))).ok());
  EXPECT_EQ(find(id)->state(), State::kFailed);
  EXPECT_EQ(find(id)->row().failure, "its files are gone");
  EXPECT_FALSE(has_isolate(id));
}

TEST_F(ReleaseTest, IsDeletedWithItsFilesAndWithoutAStart) {
  SandboxId id = create_released();
  bed_.driver->next_launch_error = Error(Code::kUnavailable, "nobody asked for it");
  ASSERT_TRUE(bed_.run(bed_.sandboxes().remove(store::kLocalTenant, id)).ok());
  EXPECT_TRUE(bed_.driver->next_launch_error) << "it was started";
  EXPECT_FALSE(find(id));
  EXPECT_TRUE(bed_.driver->kept.empty());
  EXPECT_FALSE(has_isolate(id));
  EXPECT_EQ(bed_.admission().promised().sandboxes, 0u);
}

TEST_F(ReleaseTest, IsStartedToBeDeletedIfItMayHaveLeftArtifacts) {
  SandboxId id = create()->id();
  restart();  // from here on nobody knows what its programs left before
  ASSERT_TRUE(bed_.run(Pause::begin(find(id))).ok());
  bed_.clock.advance(seconds(11));
  sweep(bed_);
  ASSERT_TRUE(find(id)->row().released);
  bed_.driver->next_launch_error = Error(Code::kUnavailable, "no").with_reason("isolate_failed");
  ASSERT_TRUE(bed_.run(bed_.sandboxes().remove(store::kLocalTenant, id)).ok())
      << "they are lost, and it goes all the same";
  EXPECT_FALSE(bed_.driver->next_launch_error);
  EXPECT_FALSE(find(id));
  EXPECT_TRUE(bed_.driver->kept.empty());
  EXPECT_EQ(bed_.admission().promised().sandboxes, 0u);
  EXPECT_EQ(promised_memory(), 0u);
}

TEST(NotCarriedText, ReadsBackAsItWas) {
  std::vector<NotCarried> left = {{NotCarried::What::kExec, "e1"},
                                  {NotCarried::What::kContextState, "c2"}};
  auto read = decode_not_carried(encode_not_carried(left));
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[1].what, NotCarried::What::kContextState);
  EXPECT_EQ(read[1].id, "c2");
  EXPECT_TRUE(decode_not_carried("").empty());
  EXPECT_TRUE(decode_not_carried(kNoArtifacts).empty());
}

}  // namespace
}  // namespace atl::sandbox
