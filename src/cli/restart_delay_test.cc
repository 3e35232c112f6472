#include "cli/restart_delay.h"

#include <gtest/gtest.h>

namespace atl::cli {
namespace {

using std::chrono::milliseconds;

TEST(RestartDelay, DoublesFromTenMillisecondsToHalfASecond) {
  RestartDelay delay;
  for (int expected : {10, 20, 40, 80, 160, 320, 500, 500})
    EXPECT_EQ(delay.after(milliseconds(9'999)), milliseconds(expected));
}

TEST(RestartDelay, StartsOverAfterTenSecondsOfLife) {
  RestartDelay delay;
  for (int i = 0; i < 20; ++i) static_cast<void>(delay.after(milliseconds(0)));
  EXPECT_EQ(delay.after(milliseconds(10'000)), milliseconds(10));
  EXPECT_EQ(delay.after(milliseconds(0)), milliseconds(20));
}

}  // namespace
}  // namespace atl::cli
