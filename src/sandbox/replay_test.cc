// Replays with a fake isolate: what is recorded, and what is told of a difference.
#include "sandbox/replay.h"

#include <gtest/gtest.h>

#include "sandbox/test_bed.h"

namespace atl::sandbox {
namespace {

class ReplayTest : public testing::Test {
 protected:
  ReplayTest() : snapshots_(bed_.sandboxes(), bed_.admission()), sandbox_(bed_.create()) {}

  store::SnapshotRow cut() {
    auto kept = bed_.run(snapshots_.cut(sandbox_, {}));
    EXPECT_TRUE(kept.ok());
    return kept->row;
  }
  RecordedRun run(std::vector<std::string> words) {
    return {.exec = bed_.run_exec(*sandbox_, std::move(words)).id};
  }
  Result<Replayed> replay(std::vector<RecordedRun> runs) {
    ReplayRequest request{.from = cut().id, .runs = std::move(runs)};
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

// From here on the clock stands still: all is of one millisecond.
TEST_F(ReplayTest, WhatIsInTheSnapshotIsNotDoneAgain) {
  run({"echo", "before"});
  store::SnapshotRow from = cut();
  RecordedRun after = run({"echo", "after"});
  auto found = bed_.run(runs_since(bed_.ledger(), sandbox_, from.cut_sequence));
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, std::vector<RecordedRun>{after});
}

TEST_F(ReplayTest, RunsOfContextsAndExecsKeepTheirOrder) {
  store::ContextRow row{
      .sandbox = sandbox_->id(), .tenant = store::kLocalTenant, .id = ContextId::draw()};
  row.language = "python";
  auto insert = [row](store::Catalog& catalog) { return catalog.contexts().insert(row); };
  ASSERT_TRUE(bed_.run(bed_.ledger().run(insert)).ok());
  store::SnapshotRow from = cut();
  std::vector<RecordedRun> asked;
  for (uint32_t number = 1; number <= 3; ++number) {
    asked.push_back({.exec = bed_.start_exec(*sandbox_, {"hang", "on"})->id()});
    store::RunRow one{.sandbox = row.sandbox, .tenant = row.tenant, .context = row.id};
    one.number = number;
    one.created_at_ms = to_milliseconds(bed_.clock.wall_now());
    one.sequence = bed_.ledger().draw();
    auto insert_run = [one](store::Catalog& catalog) { return catalog.contexts().insert_run(one); };
    ASSERT_TRUE(bed_.run(bed_.ledger().run(insert_run)).ok());
    asked.push_back({.context = row.id, .number = number});
  }
  auto found = bed_.run(runs_since(bed_.ledger(), sandbox_, from.cut_sequence));
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, asked);
}

}  // namespace
}  // namespace atl::sandbox
