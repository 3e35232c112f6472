// Programs that are stopped and go on: what the agent counts meanwhile.
#include <unistd.h>

#include "agent/exec_case_test.h"

namespace atl::agent {
namespace {

class AgentFreeze : public ExecCase {
 protected:
  // Stops what runs for that long; the agent answers meanwhile, and knows of it by then.
  void stand_still(int ms) {
    ASSERT_TRUE(sandbox_.freeze());
    ASSERT_TRUE(catches_up(daemon_));
    bool was_over = record(1).ended();
    Stopwatch stopwatch;
    linger(daemon_, std::chrono::milliseconds(ms));
    frozen_us_ = stopwatch.elapsed_us();
    EXPECT_EQ(record(1).ended(), was_over) << "its time went on";
    ASSERT_TRUE(sandbox_.thaw());
  }
  // At most what has gone by since then. Half of the freeze is left for the kernel, which tells
  // the agent of it a moment late.
  uint64_t most_wall_us(const Stopwatch& since) const {
    return since.elapsed_us() - frozen_us_ / 2;
  }

  uint64_t frozen_us_ = 0;
};

TEST_P(AgentFreeze, CountsNoWallTime) {
  Start start = shell("echo up; read line; echo done");
  start.input_mode = InputMode::kOpen;
  Stopwatch stopwatch;
  daemon_.start(1, start);
  ASSERT_TRUE(prints(1, "up"));
  stand_still(2000);
  type(1, 0, "go on\n");
  const Record& done = daemon_.finish(1);
  ASSERT_TRUE(done.exit);
  EXPECT_EQ(done.exit->cause, Cause::kProgram);
  EXPECT_EQ(done.exit->status, 0);
  EXPECT_EQ(done.out, "up\ndone\n");
  EXPECT_LE(done.exit->wall_us, most_wall_us(stopwatch));
  EXPECT_GE(done.exit->wall_us, 1'000u);
}

TEST_P(AgentFreeze, ALimitHoldsForWhatIsLeftOfIt) {
  Start start = shell("exec sleep 60");
  start.timeout_ms = 700;
  Stopwatch stopwatch;
  daemon_.start(1, start);
  ASSERT_TRUE(daemon_.run_until([this] { return record(1).pid.has_value(); }));
  stand_still(1500);
  const Record& done = daemon_.finish(1);
  ASSERT_TRUE(done.exit);
  EXPECT_EQ(done.exit->cause, Cause::kWallTime);
  EXPECT_GE(done.exit->start_us + done.exit->wall_us, 700'000u);
  EXPECT_LE(done.exit->wall_us, most_wall_us(stopwatch));
}

TEST_P(AgentFreeze, AProgramThatIsKilledMeanwhileHasNoLongerTimeThanItRan) {
  Stopwatch stopwatch;
  daemon_.start(1, shell("echo up; exec sleep 60"));
  ASSERT_TRUE(prints(1, "up"));
  ASSERT_TRUE(sandbox_.freeze());
  ASSERT_TRUE(catches_up(daemon_));
  uint64_t ran_us = stopwatch.elapsed_us();
  linger(daemon_, std::chrono::milliseconds(800));
  kill(1);
  const Record& done = daemon_.finish(1);
  ASSERT_TRUE(sandbox_.thaw());
  ASSERT_TRUE(done.exit);
  EXPECT_EQ(done.exit->cause, Cause::kClient);
  EXPECT_LE(done.exit->wall_us, ran_us + 400'000u) << "half of the freeze, as above";
}

TEST_P(AgentFreeze, WhatIsStartedMeanwhileWaits) {
  ASSERT_TRUE(sandbox_.freeze());
  daemon_.start(1, shell("echo up"));
  ASSERT_TRUE(catches_up(daemon_));
  linger(daemon_, std::chrono::milliseconds(300));
  EXPECT_FALSE(record(1).ended());
  EXPECT_EQ(record(1).out, "");
  ASSERT_TRUE(sandbox_.thaw());
  const Record& done = daemon_.finish(1);
  ASSERT_TRUE(done.exit);
  EXPECT_EQ(done.out, "up\n");
}

INSTANTIATE_TEST_SUITE_P(By, AgentFreeze, testing::Values(Starter::kAgent, Starter::kSpawner),
                         starter_name);

}  // namespace
}  // namespace atl::agent
