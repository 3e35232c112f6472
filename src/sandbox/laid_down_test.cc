#include "sandbox/laid_down.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>

#include <gtest/gtest.h>

namespace atl::sandbox {
namespace {

Basis basis_of_image(unsigned char first) {
  std::array<unsigned char, Digest::kBytes> bytes = {first};
  return Basis{Digest::from_bytes(bytes)};
}

LaidDown laid_down_at(SteadyTime time) {
  WarmIsolate isolate{.id = SandboxId::draw(), .basis = basis_of_image(1)};
  isolate.limits.memory_bytes = 1 << 30;
  return {std::move(isolate), Fd(memfd_create("machine", MFD_CLOEXEC)), SnapshotId::draw(), time};
}

TEST(LaidDownMachine, IsUsedForAnHourOrTenThousandOthers) {
  SteadyTime begin{};
  LaidDown one = laid_down_at(begin);
  EXPECT_FALSE(one.is_worn(begin + std::chrono::minutes(59)));
  EXPECT_TRUE(one.is_worn(begin + std::chrono::minutes(61)));
  one.begun = 9'999;
  EXPECT_FALSE(one.is_worn(begin));
  one.begun = 10'000;
  EXPECT_TRUE(one.is_worn(begin));
}

TEST(LaidDownMachine, LendsToOthersOfItsImageAndLimitsOnly) {
  LaidDown one = laid_down_at({});
  isolate::WallLimits limits = one.isolate.limits;
  EXPECT_TRUE(one.lends_to(basis_of_image(1), limits));
  EXPECT_FALSE(one.lends_to(basis_of_image(2), limits));
  limits.memory_bytes = 2u << 30;
  EXPECT_FALSE(one.lends_to(basis_of_image(1), limits));
}

TEST(LaidDownMachine, TakesTheMemoryThatWasWritten) {
  LaidDown one = laid_down_at({});
  ASSERT_EQ(ftruncate(one.memory.get(), 64 << 20), 0);
  std::array<char, 4096> page = {1};
  for (off_t at : {0, 8 << 20})
    ASSERT_EQ(pwrite(one.memory.get(), page.data(), page.size(), at), ssize_t{4096});
  EXPECT_GE(one.memory_bytes(), 8192u);
  EXPECT_LT(one.memory_bytes(), 16u << 20);
}

}  // namespace
}  // namespace atl::sandbox
