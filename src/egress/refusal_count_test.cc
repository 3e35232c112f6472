#include "egress/refusal_count.h"

#include <gtest/gtest.h>

namespace atl::egress {
namespace {

using enum RefusalCount::Whose;

TEST(RefusalCount, WhatIsMissingWasLost) {
  RefusalCount count;
  EXPECT_EQ(count.add(0, kSandbox), 1u);
  EXPECT_EQ(count.add(1, kSandbox), 1u);
  EXPECT_EQ(count.add(5, kSandbox), 4u);
}

TEST(RefusalCount, TheFirstMessagesCanBeLostToo) {
  RefusalCount count;
  EXPECT_EQ(count.add(3, kSandbox), 4u);
}

TEST(RefusalCount, AMarkerTellsWhatWasLostBeforeItAndCountsForNothing) {
  RefusalCount count;
  EXPECT_EQ(count.add(0, kSandbox), 1u);
  count.marker_sent();
  EXPECT_EQ(count.add(4, kOurs), 3u);
  count.marker_sent();
  EXPECT_EQ(count.add(5, kOurs), 0u);
}

TEST(RefusalCount, AMarkerThatIsLostCountsForNothing) {
  RefusalCount count;
  EXPECT_EQ(count.add(0, kSandbox), 1u);
  count.marker_sent();
  EXPECT_EQ(count.add(4, kSandbox), 3u) << "1 to 3, of which one was the marker, and 4";
  count.marker_sent();
  EXPECT_EQ(count.add(6, kOurs), 1u);
}

TEST(RefusalCount, AMarkerThatComesLateChangesNoSum) {
  RefusalCount count;
  count.marker_sent();
  // 0 and 1 are lost, 2 is the sandbox's, 3 the marker: three of the sandbox's in all.
  EXPECT_EQ(count.add(2, kSandbox) + count.add(3, kOurs), 3u);
  EXPECT_EQ(count.add(4, kSandbox), 1u);
}

TEST(RefusalCount, NumbersBeginAgain) {
  RefusalCount count;
  (void)count.add(UINT32_MAX, kSandbox);
  EXPECT_EQ(count.add(1, kSandbox), 2u);
}

}  // namespace
}  // namespace atl::egress
