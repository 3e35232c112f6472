#include "cli/selftest/attempt.h"

#include <deque>

#include <gtest/gtest.h>

#include "cli/selftest/report.h"

namespace atl::cli::selftest {
namespace {

const Judgement kHeld = {Outcome::kHeld, "refused", "ok"};
const Judgement kUnjudged = {Outcome::kUnjudged, "ended as oom", "oom"};
const Judgement kBroke = {Outcome::kBroke, "it got out", "nonzero"};
const Judgement kSkipped = {Outcome::kSkipped, "no such call", "nonzero"};

struct Tried {
  Judgement judgement;
  size_t runs;
};

Tried try_all(std::deque<Attempt> attempts) {
  size_t runs = 0;
  auto judged = judge_attempts([&]() -> Result<Attempt> {
    ++runs;
    Attempt next = attempts.front();
    attempts.pop_front();
    return next;
  });
  EXPECT_TRUE(judged.ok());
  return {*judged, runs};
}

TEST(Attempt, OnAQuietHostRunsOnceWhateverItsEnd) {
  for (const Judgement& own : {kHeld, kSkipped, kUnjudged, kBroke}) {
    Tried tried = try_all({{own}});
    EXPECT_EQ(tried.runs, 1u);
    EXPECT_EQ(tried.judgement.outcome, own.outcome);
    EXPECT_EQ(tried.judgement.detail, own.detail);
  }
}

TEST(Attempt, AHostThatChangesOnceChargesNobody) {
  for (const Judgement& own : {kHeld, kSkipped}) {
    Tried tried = try_all({{own, {"a mount", "a warning"}}, {own}});
    EXPECT_EQ(tried.runs, 2u);
    EXPECT_EQ(tried.judgement.outcome, Outcome::kHostChanged);
    EXPECT_EQ(tried.judgement.detail, "a mount; a warning; not when it ran again");
  }
}

TEST(Attempt, AHostThatChangesBothTimesIsBroken) {
  Tried tried = try_all({{kHeld, {"a mount"}}, {kHeld, {"a warning"}}});
  EXPECT_EQ(tried.judgement.outcome, Outcome::kBroke);
  EXPECT_EQ(tried.judgement.detail, "a mount; when it ran again: a warning");
}

TEST(Attempt, AVictimThatBrokeThroughIsNotTriedAgain) {
  Tried tried = try_all({{kBroke, {"a mount"}}});
  EXPECT_EQ(tried.runs, 1u);
  EXPECT_EQ(tried.judgement.outcome, Outcome::kBroke);
  EXPECT_EQ(tried.judgement.detail, "it got out; a mount");
}

TEST(Attempt, TheVictimsOwnEndCountsInBothRuns) {
  Tried tried = try_all({{kHeld, {"a mount"}}, {kBroke}});
  EXPECT_EQ(tried.judgement.outcome, Outcome::kBroke);
  EXPECT_EQ(tried.judgement.detail, "it got out; a mount; not when it ran again");
  tried = try_all({{kUnjudged, {"a mount"}}, {kHeld}});
  EXPECT_EQ(tried.judgement.outcome, Outcome::kUnjudged);
  tried = try_all({{kHeld, {"a mount"}}, {kUnjudged}});
  EXPECT_EQ(tried.judgement.outcome, Outcome::kUnjudged);
  EXPECT_EQ(tried.judgement.detail, "ended as oom; a mount; not when it ran again");
}

TEST(Report, AHostThatChangedHasAnExitCodeOfItsOwn) {
  const Judgement kHostChanged = {Outcome::kHostChanged, "a mount", "ok"};
  auto finish = [](std::initializer_list<Judgement> judgements) {
    Report report(Format::kJson);
    for (const Judgement& judgement : judgements) report.add({}, "user", judgement);
    return report.finish();
  };
  EXPECT_EQ(finish({kHeld, kSkipped}), 0);
  EXPECT_EQ(finish({kSkipped}), 1) << "nothing was tried";
  EXPECT_EQ(finish({kHeld, kHostChanged}), 3);
  EXPECT_EQ(finish({kHeld, kHostChanged, kUnjudged}), 1);
  EXPECT_EQ(finish({kHeld, kHostChanged, kBroke}), 1);
}

}  // namespace
}  // namespace atl::cli::selftest
