#include "egress/courtesy.h"

#include <gtest/gtest.h>

namespace atl::egress {
namespace {

using std::chrono::milliseconds;

constexpr size_t kSmall = 100;
constexpr size_t kLarge = Courtesy::kLargePiece;

class CourtesyTest : public testing::Test {
 protected:
  bool passed(int sandbox, size_t bytes) {
    return courtesy_.passed(reinterpret_cast<const Gate*>(places_ + sandbox), bytes, now_);
  }
  Courtesy courtesy_;
  SteadyTime now_{std::chrono::hours(1)};

 private:
  char places_[3] = {};
};

TEST_F(CourtesyTest, NobodyBreathesAlone) {
  EXPECT_FALSE(passed(0, kLarge));
  EXPECT_FALSE(passed(0, kSmall));
  EXPECT_FALSE(passed(0, kLarge)) << "for its own small pieces";
}

TEST_F(CourtesyTest, LargePiecesBreatheWhileAnotherSpeaks) {
  EXPECT_FALSE(passed(1, kSmall));
  EXPECT_TRUE(passed(0, kLarge));
  EXPECT_FALSE(passed(0, kSmall));
  EXPECT_TRUE(passed(0, kLarge)) << "its own words do not hide the other's";
  EXPECT_FALSE(passed(0, kLarge - 1));
}

TEST_F(CourtesyTest, SilenceIsNotWaitedFor) {
  EXPECT_FALSE(passed(1, kSmall));
  now_ += milliseconds(4);
  EXPECT_FALSE(passed(0, kLarge));
}

TEST_F(CourtesyTest, TheLastOfManyCounts) {
  EXPECT_FALSE(passed(1, kSmall));
  now_ += milliseconds(4);
  EXPECT_FALSE(passed(2, kSmall));
  EXPECT_TRUE(passed(0, kLarge));
  EXPECT_FALSE(passed(2, kLarge)) << "1 was too long ago";
}

}  // namespace
}  // namespace atl::egress
