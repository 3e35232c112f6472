#include "sandbox/admission.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "async/spawn.h"
#include "sandbox/test_bed.h"

namespace atl::sandbox {
namespace {

constexpr store::TenantId kTenant = store::kLocalTenant;

Limits limits_of(uint64_t memory_bytes, uint64_t disk_bytes) {
  return {{1000, memory_bytes, 64, disk_bytes}, 1};
}

Budget small_budget() {
  return {.sandboxes = 3,
          .memory_bytes = 100,
          .disk_bytes = 1000,
          .free_space_floor_bytes = 0,
          .state_directory = "/"};
}

TEST(Admission, MemoryIsShortWhenASixteenthIsLeft) {
  std::string path = testing::TempDir() + "meminfo";
  Budget budget = small_budget();
  budget.memory_info = path;
  Admission admission(budget);
  auto is_short_with = [&](const std::string& text) {
    std::ofstream(path) << text;
    return admission.memory_is_short();
  };
  EXPECT_FALSE(is_short_with("MemTotal:  1600 kB\nMemFree:  1 kB\nMemAvailable:  100 kB\n"));
  EXPECT_TRUE(is_short_with("MemTotal:  1600 kB\nMemFree:  1 kB\nMemAvailable:  99 kB\n"));
  EXPECT_FALSE(is_short_with("nothing of the kind\n"));
  unlink(path.c_str());
  EXPECT_FALSE(admission.memory_is_short());
  EXPECT_FALSE(Admission(small_budget()).memory_is_short()) << "of this host";
}

TEST(Admission, EachBudgetIsKeptToTheLastByteAndGivenBack) {
  Admission admission(small_budget());
  auto first = admission.reserve(limits_of(60, 400));
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(admission.reserve(limits_of(41, 1)).error().reason(), "no_capacity");
  EXPECT_EQ(admission.reserve(limits_of(1, 601)).error().reason(), "no_capacity");
  EXPECT_EQ(admission.promised().sandboxes, 1u);
  auto second = admission.reserve(limits_of(40, 600));
  ASSERT_TRUE(second.ok());
  auto third = admission.reserve(limits_of(0, 0));
  ASSERT_TRUE(third.ok());
  EXPECT_EQ(admission.reserve(limits_of(0, 0)).error().reason(), "no_capacity");
  first->release();
  first->release();
  EXPECT_EQ(admission.promised().sandboxes, 2u);
  EXPECT_TRUE(admission.reserve(limits_of(60, 400)).ok());
}

TEST(Admission, TellsHowMuchMemoryIsMissingWhereThatIsAllThatIs) {
  using Place = Admission::Place;
  Admission admission(small_budget());
  auto first = admission.reserve(limits_of(60, 400));
  EXPECT_EQ(admission.missing_memory(limits_of(40, 600), Place::kNew), 0u);
  EXPECT_EQ(admission.missing_memory(limits_of(50, 600), Place::kNew), 10u);
  EXPECT_EQ(admission.missing_memory(limits_of(50, 601), Place::kNew), 0u) << "and disk";
  auto second = admission.reserve(limits_of(0, 0)), third = admission.reserve(limits_of(0, 0));
  EXPECT_EQ(admission.missing_memory(limits_of(50, 0), Place::kNew), 0u) << "and a place";
  EXPECT_EQ(admission.missing_memory(limits_of(50, 0), Place::kHeld), 10u);
}

TEST(Admission, WhatNoSandboxCouldEverHaveHereIsRefusedWithTheField) {
  std::string directory = testing::TempDir() + "admission-test";
  std::filesystem::create_directories(directory);
  { std::ofstream(directory + "/pool.btrfs") << std::string(500, ' '); }
  Budget budget = small_budget();
  budget.state_directory = directory;
  budget.host_memory_bytes = 50;
  Admission admission(budget);
  auto memory = admission.reserve(limits_of(51, 1));
  auto disk = admission.reserve(limits_of(1, 501));
  EXPECT_TRUE(admission.reserve(limits_of(50, 500)).ok());
  std::filesystem::remove_all(directory);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.error().code(), Code::kInvalid);
  EXPECT_EQ(memory.error().field(), "limits.memory_bytes");
  ASSERT_FALSE(disk.ok());
  EXPECT_EQ(disk.error().reason(), "exceeds_host");
  EXPECT_EQ(disk.error().field(), "limits.disk_bytes");
}

TEST(Admission, WhatNobodyAskedForIsAsMuchAsFits) {
  std::string directory = testing::TempDir() + "admission-fit-test";
  std::filesystem::create_directories(directory);
  Budget budget = small_budget();
  budget.disk_bytes = kNoDiskBudget;
  budget.state_directory = directory;
  Admission admission(budget);
  EXPECT_EQ(admission.fitting_disk(1ull << 30), 1ull << 30) << "there is no pool yet";
  { std::ofstream file(directory + "/pool.btrfs"); }
  std::filesystem::resize_file(directory + "/pool.btrfs", 512ull << 20);
  uint64_t fitting = admission.fitting_disk(1ull << 30);
  EXPECT_LT(fitting, 512ull << 20);
  EXPECT_TRUE(admission.reserve(limits_of(1, fitting)).ok());
  EXPECT_EQ(admission.fitting_disk(1ull << 20), 1ull << 20);
  std::filesystem::remove_all(directory);
}

TEST(Admission, DiskIsCountedAgainstThePoolUnlessTheOperatorSaysMore) {
  std::string directory = testing::TempDir() + "admission-pool-test";
  std::filesystem::create_directories(directory);
  Budget budget = small_budget();
  budget.disk_bytes = kNoDiskBudget;
  budget.state_directory = directory;
  Admission admission(budget);
  EXPECT_EQ(admission.disk_budget(), kNoDiskBudget) << "it is not made yet";
  { std::ofstream(directory + "/pool.btrfs") << std::string(10, ' '); }
  EXPECT_EQ(admission.disk_budget(), 10 * kDiskOvercommit);
  std::vector<Reservation> held;
  for (uint64_t i = 0; i < kDiskOvercommit; ++i) held.push_back(*admission.reserve_disk(10));
  EXPECT_EQ(admission.reserve_disk(1).error().reason(), "no_capacity");
  std::filesystem::remove_all(directory);
}

TEST(Admission, OneTenantIsPromisedHalfAndTheOperatorAll) {
  auto one = store::TenantId::from_number(2), other = store::TenantId::from_number(3);
  Admission admission(small_budget());
  auto all = admission.reserve(limits_of(100, 1), one);
  ASSERT_FALSE(all.ok());
  EXPECT_EQ(all.error().reason(), "tenant_share_full");
  auto half = admission.reserve(limits_of(50, 500), one);
  ASSERT_TRUE(half.ok());
  EXPECT_EQ(admission.reserve(limits_of(1, 0), one).error().reason(), "tenant_share_full");
  EXPECT_EQ(admission.reserve_disk(1, one).error().reason(), "tenant_share_full");
  EXPECT_EQ(half->resize(limits_of(51, 500)).error().reason(), "tenant_share_full");
  auto theirs = admission.reserve(limits_of(40, 400), other);
  ASSERT_TRUE(theirs.ok());
  half->release();
  theirs->release();
  // What waited for nobody in particular is somebody's from then on.
  auto warm = admission.reserve(limits_of(10, 0));
  ASSERT_TRUE(warm.ok());
  EXPECT_EQ(warm->resize_for(*one, limits_of(51, 0)).error().reason(), "tenant_share_full");
  ASSERT_TRUE(warm->resize_for(*one, limits_of(50, 0)).ok());
  EXPECT_EQ(admission.reserve(limits_of(1, 0), one).error().reason(), "tenant_share_full");
  warm->release();
  EXPECT_EQ(admission.promised().memory_bytes, 0u);
  EXPECT_TRUE(admission.reserve(limits_of(100, 1000), kTenant).ok());
}

TEST(Admission, TooLittleFreeSpaceIsTheHostsDiskAndNotItsCapacity) {
  Budget budget = small_budget();
  budget.free_space_floor_bytes = UINT64_MAX;
  Admission admission(budget);
  EXPECT_EQ(admission.reserve(limits_of(1, 1)).error().reason(), "disk_full");
  EXPECT_EQ(admission.promised().sandboxes, 0u);
}

TEST(Admission, OfTwoHundredCreatesAtOnceExactlyTheBudgetSucceeds) {
  TestBed bed;
  constexpr size_t kCreates = 200;
  std::vector<SandboxId> made;
  size_t refused = 0;
  auto create = [&]() -> Task<void> {
    auto created = co_await bed.sandboxes().create(kTenant, bed.create_request());
    if (created) {
      made.push_back(created->sandbox->id());
    } else if (created.error().reason() == "no_capacity") {
      ++refused;
    }
  };
  // detached: owned by this test, whose loop below waits for all
  for (size_t i = 0; i < kCreates; ++i) spawn(bed.context().get_executor(), create());
  for (int i = 0; i < 20'000 && made.size() + refused < kCreates; ++i) bed.step();
  EXPECT_EQ(made.size(), bed.budget.sandboxes);
  EXPECT_EQ(refused, kCreates - bed.budget.sandboxes);
  EXPECT_EQ(bed.admission().promised().sandboxes, bed.budget.sandboxes);
  EXPECT_EQ(bed.run(bed.driver->list())->size(), bed.budget.sandboxes);
  for (SandboxId id : made) ASSERT_TRUE(bed.run(bed.sandboxes().remove(kTenant, id)).ok());
  EXPECT_EQ(bed.admission().promised().sandboxes, 0u);
  EXPECT_TRUE(bed.run(bed.driver->list())->empty());
}

TEST(Admission, WhatRunsASandboxCountsToo) {
  store::SandboxRow row{
      .id = SandboxId::draw(), .tenant = kTenant, .image = *Digest::parse(std::string(64, 'b'))};
  row.memory_bytes = 64ull << 20;
  row.disk_bytes = 32ull << 20;
  Admission admission({.sandboxes = 3,
                       .memory_bytes = 1ull << 40,
                       .disk_bytes = kNoDiskBudget,
                       .free_space_floor_bytes = 0,
                       .state_directory = "/"});
  struct {
    const char* isolation;
    uint64_t memory_mib, disk_mib;
  } constexpr kCases[] = {{"jail", 64, 32}, {"gvisor", 64 + 192, 96}, {"microvm", 64 + 272, 96}};
  for (const auto& one : kCases) {
    row.isolation = one.isolation;
    auto reserved = admission.reserve(sandbox::limits_of(row));
    ASSERT_TRUE(reserved.ok());
    EXPECT_EQ(admission.promised().memory_bytes, one.memory_mib << 20) << one.isolation;
    EXPECT_EQ(admission.promised().disk_bytes, one.disk_mib << 20) << one.isolation;
  }
}

}  // namespace
}  // namespace atl::sandbox
