#include "sandbox/demand.h"

#include <gtest/gtest.h>

namespace atl::sandbox {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

TEST(Demand, APeakIsRememberedAndHalves) {
  SteadyTime start = SteadyTime() + minutes(10);
  Demand demand;
  EXPECT_EQ(demand.lately(start), 0u);
  for (int i = 0; i < 9; ++i) demand.count(start);
  EXPECT_EQ(demand.lately(start), 9u);
  EXPECT_EQ(demand.lately(start + seconds(3)), 9u);
  EXPECT_EQ(demand.lately(start + minutes(2)), 4u);
  EXPECT_EQ(demand.lately(start + minutes(3)), 4u);
  EXPECT_EQ(demand.lately(start + minutes(4)), 2u);
  EXPECT_EQ(demand.lately(start + minutes(6)), 1u);
  EXPECT_EQ(demand.lately(start + minutes(8)), 0u);
}

TEST(Demand, WhatComesBitByBitIsNotAPeak) {
  SteadyTime now = SteadyTime() + minutes(10);
  Demand demand;
  for (int i = 0; i < 50; ++i) {
    now += seconds(3);
    demand.count(now);
    EXPECT_EQ(demand.lately(now), 1u);
  }
}

TEST(Demand, AHigherPeakTakesItsPlace) {
  SteadyTime now = SteadyTime() + minutes(10);
  Demand demand;
  demand.count(now);
  EXPECT_EQ(demand.lately(now), 1u);
  now += minutes(1);
  for (int i = 0; i < 7; ++i) demand.count(now);
  EXPECT_EQ(demand.lately(now), 7u);
  EXPECT_EQ(demand.lately(now + minutes(1)), 7u);
}

}  // namespace
}  // namespace atl::sandbox
