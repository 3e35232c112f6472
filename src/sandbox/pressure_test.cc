// Memory that is short, with a fake isolate: who gives it back, in which order, and who does not.
#include <fstream>

#include <gtest/gtest.h>

#include "sandbox/pause.h"
#include "sandbox/test_bed.h"

namespace atl::sandbox {
namespace {

constexpr uint64_t kGib = 1ull << 30;

class PressureTest : public testing::Test {
 protected:
  // A host that can promise four of what create() asks for.
  PressureTest() {
    bed_.budget.memory_bytes = 4 * kGib;
    bed_.budget.memory_info = bed_.directory() + "/meminfo";
    set_available(800);
    bed_.restart();
  }
  void set_available(int kilobytes) {
    std::ofstream(bed_.budget.memory_info)
        << "MemTotal: 1600 kB\nMemAvailable: " << kilobytes << " kB\n";
  }
  Result<Created> try_create(bool gives_back = false, uint64_t memory_bytes = kGib) {
    CreateSandbox request = bed_.create_request();
    request.files_only_under_pressure = gives_back;
    request.memory_bytes = memory_bytes;
    return bed_.run(bed_.sandboxes().create(store::kLocalTenant, std::move(request)));
  }
  SandboxId create_paused(bool gives_back) {
    auto created = try_create(gives_back);
    EXPECT_TRUE(created.ok());
    bed_.driver->files(created->sandbox->id()).contents()["/tmp/a"] = "files";
    EXPECT_TRUE(bed_.run(Pause::begin(created->sandbox)).ok());
    bed_.clock.advance(std::chrono::seconds(1));
    return created->sandbox->id();
  }
  std::shared_ptr<Sandbox> find(SandboxId id) {
    return bed_.sandboxes().find(store::kLocalTenant, id);
  }
  bool rests(SandboxId id) { return find(id)->row().released.has_value(); }
  uint64_t promised_memory() { return bed_.admission().promised().memory_bytes; }

  TestBed bed_;
};

TEST_F(PressureTest, ACreateTakesTheMemoryOfWhoWasPausedFirstAndAllowedIt) {
  SandboxId keeps = create_paused(false);
  SandboxId first = create_paused(true);
  SandboxId second = create_paused(true);
  ASSERT_TRUE(try_create().ok());
  EXPECT_FALSE(rests(first)) << "there was room";
  ASSERT_TRUE(try_create().ok());
  EXPECT_TRUE(rests(first));
  EXPECT_FALSE(rests(second)) << "one was enough";
  EXPECT_FALSE(rests(keeps));
  EXPECT_EQ(promised_memory(), 4 * kGib);
  ASSERT_TRUE(try_create().ok());
  EXPECT_TRUE(rests(second));
  EXPECT_EQ(try_create().error().reason(), "no_capacity") << "the rest did not allow it";
  EXPECT_FALSE(rests(keeps));
  EXPECT_EQ(find(keeps)->state(), State::kPaused);
}

TEST_F(PressureTest, OfThoseOfOneMillisecondTheOneThatWasPausedFirstGivesItBack) {
  std::vector<SandboxId> paused;
  for (int i = 0; i < 4; ++i) {
    auto created = try_create(true);
    ASSERT_TRUE(created.ok());
    ASSERT_TRUE(bed_.run(Pause::begin(created->sandbox)).ok());
    paused.push_back(created->sandbox->id());
  }
  for (size_t made = 1; made <= paused.size(); ++made) {
    ASSERT_TRUE(try_create().ok());
    for (size_t i = 0; i < paused.size(); ++i) EXPECT_EQ(rests(paused[i]), i < made) << i;
  }
}

TEST_F(PressureTest, NobodyGivesBackWhatWouldNotDo) {
  SandboxId paused = create_paused(true);
  ASSERT_TRUE(try_create(false, 2 * kGib).ok());
  EXPECT_EQ(try_create(false, 3 * kGib).error().reason(), "no_capacity");
  EXPECT_FALSE(rests(paused));
  ASSERT_TRUE(try_create(false, 2 * kGib).ok());
  EXPECT_TRUE(rests(paused));
}

TEST_F(PressureTest, NobodyGivesBackMemoryWhereItIsNotMemoryThatIsShort) {
  SandboxId paused = create_paused(true);
  for (int i = 1; i < 10; ++i) ASSERT_TRUE(try_create(false, kGib / 4).ok());
  EXPECT_EQ(try_create(false, 2 * kGib).error().reason(), "no_capacity") << "there are ten";
  EXPECT_FALSE(rests(paused));
}

TEST_F(PressureTest, OneThatGoesOnTakesItFromOthers) {
  SandboxId first = create_paused(true);
  SandboxId second = create_paused(true);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(try_create().ok());
  ASSERT_TRUE(rests(first));
  ASSERT_FALSE(rests(second));
  ASSERT_TRUE(bed_.run(Pause::end(find(first))).ok());
  EXPECT_EQ(find(first)->state(), State::kRunning);
  EXPECT_EQ(bed_.driver->files(first).contents().at("/tmp/a"), "files");
  EXPECT_TRUE(rests(second));
  auto resumed = bed_.run(Pause::end(find(second)));
  ASSERT_FALSE(resumed.ok());
  EXPECT_EQ(resumed.error().reason(), "no_capacity");
  EXPECT_TRUE(rests(second));
}

TEST_F(PressureTest, TheHostsOwnMemoryIsLookedAt) {
  SandboxId keeps = create_paused(false);
  EXPECT_GT(bed_.sandboxes().next_due(), bed_.clock.steady_now() + std::chrono::minutes(1));
  SandboxId paused = create_paused(true);
  EXPECT_LE(bed_.sandboxes().next_due(), bed_.clock.steady_now() + std::chrono::seconds(1));
  sweep(bed_);
  EXPECT_FALSE(rests(paused)) << "half of it is left";
  set_available(50);
  sweep(bed_);
  EXPECT_TRUE(rests(paused));
  EXPECT_FALSE(rests(keeps));
  // Leave may be given later.
  ASSERT_TRUE(
      bed_.run(bed_.sandboxes().change(find(keeps), {.files_only_under_pressure = true})).ok());
  sweep(bed_);
  EXPECT_TRUE(rests(keeps));
  EXPECT_GT(bed_.sandboxes().next_due(), bed_.clock.steady_now() + std::chrono::minutes(1));
}

TEST_F(PressureTest, WhatCannotBeGivenBackIsNotPromised) {
  SandboxId paused = create_paused(true);
  bed_.driver->remove_error = Error(Code::kUnavailable, "the warden is away");
  EXPECT_EQ(try_create(false, 4 * kGib).error().reason(), "no_capacity");
  EXPECT_EQ(promised_memory(), kGib);
  bed_.driver->remove_error.reset();
  sweep(bed_);
  EXPECT_TRUE(rests(paused));
  EXPECT_TRUE(try_create(false, 4 * kGib).ok());
}

TEST_F(PressureTest, TheLeaveOutlivesAtolld) {
  SandboxId paused = create_paused(true);
  bed_.restart();
  ASSERT_TRUE(bed_.run(bed_.sandboxes().adopt()).ok());
  EXPECT_TRUE(find(paused)->row().files_only_under_pressure);
  ASSERT_TRUE(try_create(false, 4 * kGib).ok());
  EXPECT_TRUE(rests(paused));
}

}  // namespace
}  // namespace atl::sandbox
