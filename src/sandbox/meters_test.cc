#include "sandbox/meters.h"

#include <gtest/gtest.h>

#include "sandbox/pause.h"
#include "sandbox/test_bed.h"

namespace atl::sandbox {
namespace {

class FakeMeter final : public isolate::Meter {
 public:
  Task<Result<linux::ResourceUsage>> usage(SandboxId) override {
    if (failure) co_return *failure;
    co_return used;
  }
  linux::ResourceUsage used = {};
  std::optional<Error> failure;
};

TEST(Meters, TellsWhatIsUsedSinceThePointBefore) {
  TestBed bed;
  auto sandbox = bed.create();
  double cpus = sandbox->row().cpu_millis / 1000.0;
  FakeMeter meter;
  Meters meters(bed.sandboxes(), meter);
  bed.clock.advance(std::chrono::seconds(10));
  meter.used = {.cpu_us = 1'000'000, .memory_bytes = 300, .cache_bytes = 100, .disk_bytes = 7};
  auto first = bed.run(meters.read(sandbox));
  ASSERT_TRUE(first.ok());
  ASSERT_EQ(first->size(), 1u);
  EXPECT_DOUBLE_EQ(first->back().cpu_percent, 10 / cpus);
  EXPECT_EQ(first->back().memory_bytes, 200u);
  EXPECT_EQ(first->back().cache_bytes, 100u);
  EXPECT_EQ(first->back().disk_bytes, 7u);

  bed.clock.advance(std::chrono::seconds(2));
  meter.used.cpu_us = 2'000'000;
  auto second = bed.run(meters.read(sandbox));
  ASSERT_EQ(second->size(), 2u);
  EXPECT_DOUBLE_EQ(second->back().cpu_percent, 50 / cpus);
}

TEST(Meters, MeasuresOnceASecondAndKeepsTheNewest) {
  TestBed bed;
  auto sandbox = bed.create();
  FakeMeter meter;
  Meters meters(bed.sandboxes(), meter);
  EXPECT_EQ(bed.run(meters.read(sandbox))->size(), 1u);
  EXPECT_EQ(bed.run(meters.read(sandbox))->size(), 1u);
  for (size_t i = 0; i < Meters::kMaxPoints + 3; ++i) {
    bed.clock.advance(std::chrono::seconds(1));
    ASSERT_TRUE(bed.run(meters.read(sandbox)).ok());
  }
  auto points = bed.run(meters.read(sandbox));
  EXPECT_EQ(points->size(), Meters::kMaxPoints);
  EXPECT_EQ(points->back().at, bed.clock.wall_now());
}

TEST(Meters, WhatCannotBeMeasuredIsAnError) {
  TestBed bed;
  auto sandbox = bed.create();
  FakeMeter meter;
  Meters meters(bed.sandboxes(), meter);
  meter.failure = Error(Code::kUnavailable, "the warden is away");
  EXPECT_FALSE(bed.run(meters.read(sandbox)).ok());
  meter.failure.reset();
  EXPECT_EQ(bed.run(meters.read(sandbox))->size(), 1u);
}

TEST(Meters, WhatHasOnlyItsFilesHasThePointsOfBefore) {
  TestBed bed;
  CreateSandbox request = bed.create_request();
  request.files_only_after_ms = 1000;
  auto created = bed.run(bed.sandboxes().create(store::kLocalTenant, std::move(request)));
  ASSERT_TRUE(created.ok());
  auto sandbox = created->sandbox;
  FakeMeter meter;
  Meters before(bed.sandboxes(), meter), after(bed.sandboxes(), meter);
  EXPECT_EQ(bed.run(before.read(sandbox))->size(), 1u);
  ASSERT_TRUE(bed.run(Pause::begin(sandbox)).ok());
  bed.clock.advance(std::chrono::seconds(2));
  sweep(bed);
  sandbox = bed.sandboxes().find(store::kLocalTenant, sandbox->id());
  ASSERT_TRUE(sandbox->row().released);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(bed.run(before.read(sandbox))->size(), 1u);
    EXPECT_EQ(bed.run(after.read(sandbox))->size(), 0u);
  }
}

}  // namespace
}  // namespace atl::sandbox
