#include "base/check.h"

#include <gtest/gtest.h>

namespace atl {
namespace {

TEST(CheckDeathTest, BrokenInvariantAbortsAndNamesConditionAndPlace) {
  int count = 3;
  EXPECT_DEATH(ATOLL_CHECK(count == 4), "check failed: count == 4 at .*check_test\\.cc:");
}

TEST(Check, HoldingInvariantIsEvaluatedOnceAndGoesOn) {
  int evaluated = 0;
  ATOLL_CHECK(++evaluated > 0);
  EXPECT_EQ(evaluated, 1);
}

}  // namespace
}  // namespace atl
