#include "sandbox/run_timer.h"

#include <signal.h>

#include <gtest/gtest.h>

namespace atl::sandbox {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr SteadyTime kStart{std::chrono::hours(1)};

TEST(RunTimer, InterruptsAtTheDeadlineAndKillsFiveSecondsLater) {
  RunTimer timer;
  timer.start(kStart + seconds(1), true);
  timer.set_begun(kStart);
  EXPECT_EQ(timer.next(), kStart + seconds(1));
  EXPECT_EQ(timer.due(kStart), std::nullopt);
  EXPECT_FALSE(timer.timed_out());
  EXPECT_EQ(timer.due(kStart + seconds(1)), SIGINT);
  timer.set_sent(SIGINT, true, kStart + seconds(1));
  EXPECT_TRUE(timer.timed_out());
  EXPECT_EQ(timer.due(kStart + seconds(2)), std::nullopt);
  EXPECT_EQ(timer.next(), kStart + seconds(6));
  EXPECT_EQ(timer.due(kStart + seconds(6)), SIGKILL);
  timer.set_sent(SIGKILL, true, kStart + seconds(6));
  EXPECT_EQ(timer.next(), SteadyTime::max());
}

TEST(RunTimer, AnInterruptWaitsForTheBegin) {
  RunTimer timer;
  timer.start(kStart + seconds(60), true);
  timer.interrupt();
  EXPECT_EQ(timer.due(kStart + seconds(1)), std::nullopt);
  EXPECT_EQ(timer.next(), kStart + seconds(60));
  timer.set_begun(kStart + seconds(2));
  EXPECT_EQ(timer.due(kStart + seconds(2)), SIGINT);
  timer.set_sent(SIGINT, true, kStart + seconds(2));
  EXPECT_EQ(timer.due(kStart + seconds(3)), std::nullopt);
  EXPECT_FALSE(timer.timed_out());
}

TEST(RunTimer, ATimeoutWaitsForTheBeginAndGivesAnInterruptItsTime) {
  RunTimer timer;
  timer.start(kStart, true);
  EXPECT_EQ(timer.due(kStart), std::nullopt);
  EXPECT_TRUE(timer.timed_out());
  EXPECT_EQ(timer.due(kStart + seconds(29)), std::nullopt);
  timer.set_begun(kStart + seconds(29));
  EXPECT_EQ(timer.due(kStart + seconds(29)), SIGINT);
  timer.set_sent(SIGINT, true, kStart + seconds(29));
  EXPECT_EQ(timer.due(kStart + seconds(33)), std::nullopt);
  EXPECT_EQ(timer.due(kStart + seconds(34)), SIGKILL);
}

TEST(RunTimer, AnInterpreterThatNeverBeginsIsKilled) {
  RunTimer timer;
  timer.start(kStart, true);
  EXPECT_EQ(timer.due(kStart), std::nullopt);
  EXPECT_EQ(timer.due(kStart + seconds(30)), SIGKILL);
}

TEST(RunTimer, ASecondBeginPutsNoKillOff) {
  RunTimer timer;
  timer.start(kStart, true);
  timer.set_begun(kStart);
  EXPECT_EQ(timer.due(kStart), SIGINT);
  timer.set_sent(SIGINT, true, kStart);
  timer.set_begun(kStart + seconds(4));
  EXPECT_EQ(timer.due(kStart + seconds(5)), SIGKILL);
}

TEST(RunTimer, ASecondBeginRepeatsAnInterrupt) {
  RunTimer timer;
  timer.start(kStart + seconds(60), true);
  timer.set_begun(kStart);
  timer.set_begun(kStart);
  EXPECT_EQ(timer.due(kStart), std::nullopt) << "none was asked for";
  timer.interrupt();
  EXPECT_EQ(timer.due(kStart), SIGINT);
  timer.set_sent(SIGINT, true, kStart);
  timer.set_begun(kStart);
  EXPECT_EQ(timer.due(kStart), SIGINT);
}

TEST(RunTimer, AnInterpreterThatDoesNotSayBegunIsInterruptedAtOnce) {
  RunTimer timer;
  timer.start(kStart + seconds(60), false);
  timer.interrupt();
  EXPECT_EQ(timer.due(kStart), SIGINT);
}

TEST(RunTimer, AnInterruptIsOfItsRunOnly) {
  RunTimer timer;
  timer.interrupt();
  timer.start(kStart + seconds(60), true);
  timer.interrupt();
  timer.end();
  timer.start(kStart + seconds(60), true);
  timer.set_begun(kStart);
  EXPECT_EQ(timer.due(kStart), std::nullopt);
}

TEST(RunTimer, WhatCouldNotBeSentIsDueAgain) {
  RunTimer timer;
  timer.start(kStart + seconds(60), false);
  timer.interrupt();
  EXPECT_EQ(timer.due(kStart), SIGINT);
  timer.set_sent(SIGINT, false, kStart);
  EXPECT_EQ(timer.due(kStart), std::nullopt);
  EXPECT_EQ(timer.next(), kStart + milliseconds(50));
  EXPECT_EQ(timer.due(kStart + milliseconds(50)), SIGINT);
  timer.kill(kStart);
  EXPECT_EQ(timer.due(kStart), SIGKILL);
  timer.set_sent(SIGKILL, false, kStart);
  timer.end();
  EXPECT_EQ(timer.due(kStart + milliseconds(50)), SIGKILL) << "an ended run takes no kill back";
}

TEST(RunTimer, APauseCountsForNothing) {
  RunTimer timer;
  timer.start(kStart + seconds(1), true);
  timer.set_begun(kStart);
  timer.shift(seconds(10));
  EXPECT_EQ(timer.due(kStart + seconds(10)), std::nullopt);
  EXPECT_EQ(timer.due(kStart + seconds(11)), SIGINT);
}

TEST(RunTimer, AnInterpreterThatDoesNotStartIsKilled) {
  RunTimer timer;
  timer.await_interpreter(kStart);
  EXPECT_EQ(timer.due(kStart + seconds(29)), std::nullopt);
  EXPECT_EQ(timer.due(kStart + seconds(30)), SIGKILL);
  timer.await_interpreter(kStart);
  timer.interpreter_ready();
  EXPECT_EQ(timer.next(), SteadyTime::max());
}

}  // namespace
}  // namespace atl::sandbox
