// Programs that are stopped and go on: what the agent counts meanwhile.
#include <unistd.h>

#include "agent/exec_case_test.h"

namespace atl::agent {
namespace {

class AgentFreeze : public ExecCase {
 protected:
  // Stops what runs for that long; the agent answers meanwhile.
  void stand_still(int ms) {
    ASSERT_TRUE(sandbox_.freeze());
    daemon_.run_until([] { return false; }, ms);
    ASSERT_TRUE(sandbox_.thaw());
  }
};

TEST_P(AgentFreeze, CountsNoWallTime) {
  Start start = shell("echo up; sleep 0.5; echo done");
  start.timeout_ms = 1500;
  daemon_.start(1, start);
  ASSERT_TRUE(prints(1, "up"));
  stand_still(2000);
  const Record& done = daemon_.finish(1);
  ASSERT_TRUE(done.exit);
  EXPECT_EQ(done.exit->cause, Cause::kProgram);
  EXPECT_EQ(done.exit->status, 0);
  EXPECT_EQ(done.out, "up\ndone\n");
  EXPECT_LT(done.exit->wall_us, 1'500'000u);
  EXPECT_GE(done.exit->wall_us, 1'000u);
}

TEST_P(AgentFreeze, ALimitHoldsForWhatIsLeftOfIt) {
  Start start = shell("echo up; exec sleep 30");
  start.timeout_ms = 700;
  daemon_.start(1, start);
  ASSERT_TRUE(prints(1, "up"));
  stand_still(1500);
  const Record& done = daemon_.finish(1);
  ASSERT_TRUE(done.exit);
  EXPECT_EQ(done.exit->cause, Cause::kWallTime);
  EXPECT_GE(done.exit->wall_us, 600'000u);
  EXPECT_LT(done.exit->wall_us, 1'400'000u);
}

TEST_P(AgentFreeze, AProgramThatIsKilledMeanwhileHasNoLongerTimeThanItRan) {
  daemon_.start(1, shell("echo up; exec sleep 30"));
  ASSERT_TRUE(prints(1, "up"));
  ASSERT_TRUE(sandbox_.freeze());
  daemon_.run_until([] { return false; }, 800);
  kill(1);
  const Record& done = daemon_.finish(1);
  ASSERT_TRUE(sandbox_.thaw());
  ASSERT_TRUE(done.exit);
  EXPECT_EQ(done.exit->cause, Cause::kClient);
  EXPECT_LT(done.exit->wall_us, 700'000u);
}

TEST_P(AgentFreeze, WhatIsStartedMeanwhileWaits) {
  ASSERT_TRUE(sandbox_.freeze());
  daemon_.start(1, shell("echo up"));
  EXPECT_FALSE(daemon_.run_until([this] { return record(1).ended(); }, 300));
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
