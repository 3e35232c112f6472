#include "cli/doctor/kernel.h"

#include <gtest/gtest.h>

namespace atl::cli {
namespace {

TEST(KernelVersion, ReadsWhatDistributionsWrite) {
  EXPECT_EQ(parse_kernel_version("6.1.0-13-amd64"), (KernelVersion{6, 1}));
  EXPECT_EQ(parse_kernel_version("6.18.44"), (KernelVersion{6, 18}));
  EXPECT_EQ(parse_kernel_version("5.15-rc1"), (KernelVersion{5, 15}));
}

TEST(KernelVersion, RefusesWhatIsNone) {
  for (const char* text : {"", "6", "6.", "six.one", ".1"})
    EXPECT_EQ(parse_kernel_version(text), std::nullopt) << text;
}

TEST(KernelVersion, ComparesByNumberNotByText) {
  EXPECT_LT((KernelVersion{6, 7}), (KernelVersion{6, 12}));
  EXPECT_LT((KernelVersion{5, 19}), kKernelFloor);
}

}  // namespace
}  // namespace atl::cli
