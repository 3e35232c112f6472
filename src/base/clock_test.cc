#include "base/clock.h"

#include <gtest/gtest.h>

namespace atl {
namespace {

using std::chrono::milliseconds;

WallTime wall(int64_t since_epoch_ms) { return WallTime(milliseconds(since_epoch_ms)); }

TEST(Clock, Rfc3339HasMillisecondsAndIsUtc) {
  EXPECT_EQ(to_rfc3339(wall(0)), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(to_rfc3339(wall(1'794'778'080'123)), "2026-11-15T21:28:00.123Z");
  EXPECT_EQ(to_rfc3339(wall(1'709'210'096'007)), "2024-02-29T12:34:56.007Z");
}

TEST(Clock, Rfc3339CutsMicroseconds) {
  EXPECT_EQ(to_rfc3339(wall(1) + std::chrono::microseconds(999)), "1970-01-01T00:00:00.001Z");
}

TEST(Clock, Rfc3339BeforeTheEpochIsStillATime) {
  EXPECT_EQ(to_rfc3339(wall(-1)), "1969-12-31T23:59:59.999Z");
}

TEST(Clock, Rfc3339DoesNotFollowTheTimeZone) {
  setenv("TZ", "Asia/Tokyo", 1);
  tzset();
  EXPECT_EQ(to_rfc3339(wall(0)), "1970-01-01T00:00:00.000Z");
  unsetenv("TZ");
  tzset();
}

TEST(Clock, FakeMovesOnlyWhenTold) {
  FakeClock clock;
  SteadyTime steady = clock.steady_now();
  WallTime wall_start = clock.wall_now();
  EXPECT_EQ(clock.steady_now(), steady);
  clock.advance(milliseconds(1500));
  EXPECT_EQ(clock.steady_now() - steady, milliseconds(1500));
  EXPECT_EQ(clock.wall_now() - wall_start, milliseconds(1500));
}

TEST(Clock, SystemSteadyTimeNeverGoesBack) {
  SystemClock clock;
  SteadyTime before = clock.steady_now();
  for (int i = 0; i < 1000; ++i) {
    SteadyTime after = clock.steady_now();
    ASSERT_GE(after, before);
    before = after;
  }
}

}  // namespace
}  // namespace atl
