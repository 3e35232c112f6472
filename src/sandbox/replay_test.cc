// Replays with a fake isolate: what is recorded, and what is told of a difference.
#include "sandbox/replay.h"

#include <gtest/gtest.h>

#include "sandbox/test_bed.h"

namespace atl::sandbox {
namespace {

class ReplayTest : public testing::Test {
 protected:
  ReplayTest() : snapshots_(bed_.sandboxes(), bed_.admission()), sandbox_(bed_.create()) {}

  SnapshotId cut() {
    auto kept = bed_.run(snapshots_.cut(sandbox_, {}));
    EXPECT_TRUE(kept.ok());
    return kept->row.id;
  }
  RecordedRun run(std::vector<std::string> words) {
    return {.exec = bed_.run_exec(*sandbox_, std::move(words)).id};
  }
  Result<Replayed> replay(std::vector<RecordedRun> runs) {
    ReplayRequest request{.from = cut(), .runs = std::move(runs)};
    return bed_.run(replay_runs(bed_.sandboxes(), snapshots_, sandbox_, request));
  }

  TestBed bed_;
  Snapshots snapshots_;
  std::shared_ptr<Sandbox> sandbox_;
};

TEST(RecordedRuns, AreReadAsTheyAreWritten) {
  for (const char* text : {"e1", "e999", "cabcdefghijk/2"}) {
    auto run = RecordedRun::parse(text);
    ASSERT_TRUE(run) << text;
    EXPECT_EQ(run->string(), text);
  }
  for (const char* text : {"", "e0", "e", "1", "c/1", "cabcdefghijk", "cabcdefghijk/0",
                           "cabcdefghijk/x", "cabcdefghijk/1x", "e1/1"})
    EXPECT_FALSE(RecordedRun::parse(text)) << text;
}

TEST_F(ReplayTest, WhatWasRecordedIsDoneAgain) {
  RecordedRun echo = run({"echo", "hello"}), warn = run({"warn", "oh"}), exit = run({"exit", "4"});
  auto done = replay({echo, warn, exit});
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_FALSE(done->difference);
  ASSERT_EQ(done->runs.size(), 3u);
  EXPECT_EQ(done->runs[2].verdict, "nonzero");
  EXPECT_EQ(done->runs[2].exit_code, 4);
  EXPECT_EQ(bed_.sandboxes().all().size(), 1u) << "the fresh sandbox is gone";
}

TEST_F(ReplayTest, OneThatIsNotThereIsAnErrorAndLeavesNothing) {
  auto done = replay({{.exec = ExecId::from_number(77)}});
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().reason(), "exec_not_found");
  EXPECT_EQ(bed_.sandboxes().all().size(), 1u);
  ReplayRequest request{.from = SnapshotId::draw()};
  auto none = bed_.run(replay_runs(bed_.sandboxes(), snapshots_, sandbox_, request));
  EXPECT_EQ(none.error().reason(), "snapshot_not_found");
}

TEST_F(ReplayTest, OneThatRunsIsNotRunAgain) {
  auto hangs = bed_.start_exec(*sandbox_, {"hang", "on"});
  auto done = replay({{.exec = hangs->id()}});
  ASSERT_TRUE(done.ok());
  ASSERT_EQ(done->not_replayed.size(), 1u);
  EXPECT_EQ(done->not_replayed[0].why, "it has not ended");
}

}  // namespace
}  // namespace atl::sandbox
