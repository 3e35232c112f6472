#include "sandbox/sandbox_change.h"

#include <gtest/gtest.h>

#include "async/spawn.h"
#include "sandbox/test_bed.h"

namespace atl::sandbox {
namespace {

constexpr store::TenantId kTenant = store::kLocalTenant;
constexpr uint64_t kMiB = 1 << 20;

Result<void> change(TestBed& bed, std::shared_ptr<Sandbox> sandbox, ChangeSandbox request) {
  return bed.run(bed.sandboxes().change(std::move(sandbox), std::move(request)));
}

store::SandboxRow stored(TestBed& bed, SandboxId id) {
  auto find = [id](store::Catalog& catalog) { return catalog.sandboxes().find(kTenant, id); };
  return bed.run(bed.ledger().run(find)).value().value();
}

std::shared_ptr<Sandbox> restart(TestBed& bed, std::shared_ptr<Sandbox>& sandbox) {
  SandboxId id = sandbox->id();
  sandbox.reset();
  bed.restart();
  EXPECT_TRUE(bed.run(bed.sandboxes().adopt()).ok());
  return bed.sandboxes().find(kTenant, id);
}

// How many more bytes of memory the host would promise.
uint64_t free_memory(TestBed& bed) {
  uint64_t low = 0, high = bed.budget.memory_bytes;
  while (low < high) {
    uint64_t middle = low + (high - low + 1) / 2;
    Limits limits{{.cpu_millis = 1, .memory_bytes = middle, .pids = 1, .disk_bytes = 1}, 0, 0};
    if (bed.admission().reserve(limits).ok()) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

TEST(SandboxChange, TtlCountsFromNowAndSurvivesARestart) {
  TestBed bed;
  auto sandbox = bed.create();
  bed.clock.advance(std::chrono::minutes(4));
  ASSERT_TRUE(change(bed, sandbox, {.ttl_ms = 600'000}).ok());
  EXPECT_EQ(sandbox->lifetime().ends_at(), bed.clock.wall_now() + std::chrono::minutes(10));
  bed.clock.advance(std::chrono::minutes(9));
  sandbox = restart(bed, sandbox);
  ASSERT_NE(sandbox, nullptr);
  EXPECT_EQ(sandbox->lifetime().ends_at(), bed.clock.wall_now() + std::chrono::minutes(1));
  bed.clock.advance(std::chrono::minutes(1));
  sweep(bed);
  EXPECT_EQ(bed.sandboxes().all().size(), 0u);
}

TEST(SandboxChange, IdleTtlIsGivenAndTakenAway) {
  TestBed bed;
  auto sandbox = bed.create();
  ASSERT_TRUE(change(bed, sandbox, {.ttl_ms = 3'600'000, .idle_ttl_ms = 60'000}).ok());
  EXPECT_EQ(sandbox->lifetime().ends_at(), bed.clock.wall_now() + std::chrono::minutes(1));
  ASSERT_TRUE(change(bed, sandbox, {.idle_ttl_ms = 0}).ok());
  EXPECT_EQ(sandbox->lifetime().ends_at(), bed.clock.wall_now() + std::chrono::hours(1));
}

TEST(SandboxChange, SleepingSweepIsWokenByAnEarlierEnd) {
  TestBed bed;
  auto sandbox = bed.create();
  auto wait = [](Sandboxes& sandboxes, bool& woken) -> Task<void> {
    co_await sandboxes.wait_due();
    woken = true;
  };
  bool woken = false;
  // detached: owned by this test, which waits for it
  spawn(bed.context().get_executor(), wait(bed.sandboxes(), woken));
  bed.settle();
  EXPECT_FALSE(woken);
  ASSERT_TRUE(change(bed, sandbox, {.ttl_ms = 1000}).ok());
  while (!woken) bed.step();
}

TEST(SandboxChange, LimitsReachTheWallTheRowAndTheNextAtolld) {
  TestBed bed;
  auto sandbox = bed.create();
  uint64_t before = free_memory(bed);
  ASSERT_TRUE(change(bed, sandbox,
                     {.metadata = R"({"a":"b"})",
                      .cpu_millis = 1500,
                      .memory_bytes = 768 * kMiB,
                      .pids = 99,
                      .disk_bytes = 2048 * kMiB,
                      .disk_bytes_per_second = kMiB,
                      .output_bytes = 5,
                      .open_files = 100,
                      .cpu_time_ms = 7})
                  .ok());
  EXPECT_EQ(free_memory(bed), before - 256 * kMiB);
  for (int life = 0; life < 2; ++life) {
    const isolate::WallLimits& wall = bed.driver->limits(sandbox->id());
    EXPECT_EQ(wall.cpu_millis, 1500u);
    EXPECT_EQ(wall.memory_bytes, 768 * kMiB);
    EXPECT_EQ(wall.pids, 99u);
    EXPECT_EQ(wall.disk_bytes, 2048 * kMiB);
    EXPECT_EQ(wall.disk_bytes_per_second, kMiB);
    EXPECT_EQ(limits_of(sandbox->row()).wall.memory_bytes, 768 * kMiB);
    EXPECT_EQ(limits_of(sandbox->row()).wall.open_files, 100u);
    EXPECT_EQ(limits_of(sandbox->row()).output_bytes, 5u);
    EXPECT_EQ(limits_of(sandbox->row()).cpu_time_ms, 7u);
    EXPECT_EQ(sandbox->row().metadata, R"({"a":"b"})");
    EXPECT_FALSE(sandbox->row().limits_unsettled);
    EXPECT_EQ(free_memory(bed), before - 256 * kMiB);
    if (life == 0) sandbox = restart(bed, sandbox);
  }
  ASSERT_TRUE(change(bed, sandbox, {.memory_bytes = 256 * kMiB}).ok());
  EXPECT_EQ(free_memory(bed), before + 256 * kMiB);
  EXPECT_EQ(bed.driver->limits(sandbox->id()).memory_bytes, 256 * kMiB);
  EXPECT_EQ(bed.driver->limits(sandbox->id()).pids, 99u) << "what is not named stays";
}

TEST(SandboxChange, MoreThanTheHostCanPromiseIsRefusedAndNothingChanges) {
  TestBed bed;
  auto sandbox = bed.create();
  uint64_t before = free_memory(bed);
  auto refused = change(bed, sandbox, {.memory_bytes = before + 513 * kMiB, .pids = 9});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().reason(), "no_capacity");
  EXPECT_EQ(free_memory(bed), before);
  EXPECT_EQ(bed.driver->limits(sandbox->id()).pids, 256u);
  EXPECT_FALSE(stored(bed, sandbox->id()).limits_unsettled);
  EXPECT_TRUE(change(bed, sandbox, {.memory_bytes = before + 512 * kMiB}).ok()) << "to the byte";
}

TEST(SandboxChange, RefusalOfTheWallPutsEverythingBack) {
  TestBed bed;
  auto sandbox = bed.create();
  uint64_t before = free_memory(bed);
  bed.driver->limit_change_errors.push_back(
      Error(Code::kConflict, "in use").with_reason("memory_in_use"));
  auto refused = change(bed, sandbox, {.ttl_ms = 1, .memory_bytes = 16 * kMiB, .pids = 999});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().reason(), "memory_in_use");
  EXPECT_EQ(free_memory(bed), before);
  EXPECT_EQ(bed.driver->limits(sandbox->id()).pids, 256u);
  EXPECT_EQ(stored(bed, sandbox->id()).pids, 256u);
  EXPECT_FALSE(stored(bed, sandbox->id()).limits_unsettled);
  EXPECT_NE(stored(bed, sandbox->id()).ttl_ms, 1u);
}

// The warden is gone, and nobody knows which limits are in force: the larger ones are promised
// until the next atolld brings row and wall together.
TEST(SandboxChange, UnsettledLimitsAreSettledAtTheNextStart) {
  TestBed bed;
  auto sandbox = bed.create();
  uint64_t before = free_memory(bed);
  for (int i = 0; i < 2; ++i)
    bed.driver->limit_change_errors.push_back(Error(Code::kUnavailable, "the warden is gone"));
  EXPECT_FALSE(change(bed, sandbox, {.memory_bytes = 768 * kMiB, .pids = 9}).ok());
  EXPECT_TRUE(stored(bed, sandbox->id()).limits_unsettled);
  EXPECT_EQ(free_memory(bed), before - 256 * kMiB);
  sandbox = restart(bed, sandbox);
  ASSERT_NE(sandbox, nullptr);
  EXPECT_EQ(bed.driver->limits(sandbox->id()).memory_bytes, 768 * kMiB);
  EXPECT_EQ(bed.driver->limits(sandbox->id()).pids, 256u);
  EXPECT_EQ(limits_of(sandbox->row()).wall.memory_bytes, 768 * kMiB);
  EXPECT_FALSE(stored(bed, sandbox->id()).limits_unsettled);
  EXPECT_EQ(free_memory(bed), before - 256 * kMiB);
}

TEST(SandboxChange, ChangesAtOnceComeOneAfterTheOther) {
  TestBed bed;
  auto sandbox = bed.create();
  uint64_t before = free_memory(bed);
  int done = 0;
  auto set = [&](uint64_t mebibytes) -> Task<void> {
    ChangeSandbox request{.memory_bytes = mebibytes * kMiB};
    auto changed = co_await bed.sandboxes().change(sandbox, request);
    EXPECT_TRUE(changed.ok());
    ++done;
  };
  // detached: owned by this test, which waits for them
  for (uint64_t mebibytes : {100, 900, 300}) spawn(bed.context().get_executor(), set(mebibytes));
  while (done < 3) bed.step();
  uint64_t memory_bytes = limits_of(sandbox->row()).wall.memory_bytes;
  EXPECT_EQ(bed.driver->limits(sandbox->id()).memory_bytes, memory_bytes);
  EXPECT_EQ(stored(bed, sandbox->id()).memory_bytes, memory_bytes);
  EXPECT_EQ(free_memory(bed), before + 512 * kMiB - memory_bytes);
}

TEST(SandboxChange, OpenFilesOnlyShrink) {
  TestBed bed;
  auto sandbox = bed.create();
  uint32_t now = limits_of(sandbox->row()).wall.open_files;
  auto refused = change(bed, sandbox, {.open_files = now + 1});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().reason(), "limit_fixed");
  EXPECT_TRUE(change(bed, sandbox, {.open_files = now - 1}).ok());
}

TEST(SandboxChange, FailedSandboxKeepsItsLimitsButMayLiveLonger) {
  TestBed bed;
  auto sandbox = bed.create();
  bed.driver->kill_agent(sandbox->id());
  while (sandbox->state() != State::kFailed) bed.step();
  EXPECT_EQ(change(bed, sandbox, {.pids = 9}).error().reason(), "sandbox_not_running");
  EXPECT_TRUE(change(bed, sandbox, {.ttl_ms = 600'000}).ok());
  EXPECT_EQ(stored(bed, sandbox->id()).state, "failed");
}

}  // namespace
}  // namespace atl::sandbox
