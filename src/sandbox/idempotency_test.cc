#include "sandbox/idempotency.h"

#include <gtest/gtest.h>

#include "async/spawn.h"
#include "sandbox/test_bed.h"

namespace atl::sandbox {
namespace {

const IdempotencyKey kKey{store::kLocalTenant, "key"};

Idempotency make(TestBed& bed) {
  return Idempotency(bed.context().get_executor(), bed.ledger(), bed.clock);
}

Task<Result<void>> take_and_finish(Idempotency& idempotency, std::string body) {
  ATOLL_CO_TRY(Idempotency::Turn turn, co_await idempotency.take(kKey, "request"));
  StoredAnswer answer{.status = 201, .body = std::move(body)};
  co_return co_await idempotency.finish(turn, answer);
}

TEST(Idempotency, WhoeverComesMeanwhileWaitsForTheAnswer) {
  TestBed bed;
  Idempotency idempotency = make(bed);
  auto first = bed.run(idempotency.take(kKey, "request"));
  ASSERT_TRUE(first.ok());
  EXPECT_FALSE(first->answer());
  std::optional<Result<Idempotency::Turn>> second;
  auto wait = [&]() -> Task<void> {
    auto turn = co_await idempotency.take(kKey, "request");
    second.emplace(std::move(turn));
  };
  // detached: owned by this test, which waits for it
  spawn(bed.context().get_executor(), wait());
  bed.settle();
  EXPECT_FALSE(second.has_value());
  auto other = bed.run(idempotency.take(kKey, "another request"));
  EXPECT_EQ(other.error().reason(), "idempotency_key_reused");
  StoredAnswer answer{.status = 201, .body = "made"};
  ASSERT_TRUE(bed.run(idempotency.finish(*first, answer)).ok());
  { Idempotency::Turn ended = std::move(*first); }
  while (!second) bed.step();
  ASSERT_TRUE(second->ok());
  ASSERT_TRUE((*second)->answer().has_value());
  EXPECT_EQ((*second)->answer()->body, "made");
}

TEST(Idempotency, ErrorIsGivenToAllWhoWaitedAndTheKeyIsFree) {
  TestBed bed;
  Idempotency idempotency = make(bed);
  std::optional<Result<Idempotency::Turn>> second;
  auto wait = [&]() -> Task<void> {
    auto turn = co_await idempotency.take(kKey, "request");
    second.emplace(std::move(turn));
  };
  {
    auto first = bed.run(idempotency.take(kKey, "request"));
    ASSERT_TRUE(first.ok());
    // detached: owned by this test, which waits for it
    spawn(bed.context().get_executor(), wait());
    bed.settle();
    Error full = Error(Code::kExhausted, "full").with_reason("no_capacity");
    ASSERT_TRUE(bed.run(idempotency.fail(*first, full)).ok());
  }
  while (!second) bed.step();
  ASSERT_FALSE(second->ok());
  EXPECT_EQ(second->error().reason(), "no_capacity");
  auto third = bed.run(idempotency.take(kKey, "another request"));
  ASSERT_TRUE(third.ok());
  EXPECT_FALSE(third->answer());
}

TEST(Idempotency, AnswerSurvivesARestartForADay) {
  TestBed bed;
  Idempotency idempotency = make(bed);
  ASSERT_TRUE(bed.run(take_and_finish(idempotency, "made")).ok());
  bed.restart();
  Idempotency next = make(bed);
  {
    auto again = bed.run(next.take(kKey, "request"));
    ASSERT_TRUE(again.ok() && again->answer());
    EXPECT_EQ(again->answer()->body, "made");
  }
  bed.clock.advance(std::chrono::hours(24));
  auto later = bed.run(next.take(kKey, "request"));
  ASSERT_TRUE(later.ok());
  EXPECT_FALSE(later->answer());
}

TEST(Idempotency, SweepForgetsWhatIsOld) {
  TestBed bed;
  Idempotency idempotency = make(bed);
  ASSERT_TRUE(bed.run(take_and_finish(idempotency, "made")).ok());
  auto sweep = [&]() -> Task<int> {
    co_await idempotency.sweep();
    co_return 0;
  };
  auto left = [&](int64_t now_ms) {
    auto forget = [now_ms](store::Catalog& catalog) {
      return catalog.idempotency().forget_expired(now_ms);
    };
    return bed.run(bed.ledger().run(forget)).value();
  };
  bed.clock.advance(std::chrono::hours(24));
  int64_t now_ms = to_milliseconds(bed.clock.wall_now());
  EXPECT_EQ(left(now_ms - 1), 0);
  bed.run(sweep());
  EXPECT_EQ(left(now_ms), 0) << "it was forgotten by the sweep";
}

class SteppedClock final : public Clock {
 public:
  SteadyTime steady_now() const override { return steady; }
  WallTime wall_now() const override { return wall; }

  SteadyTime steady{std::chrono::hours(1)};
  WallTime wall{std::chrono::seconds(1'800'000'000)};
};

TEST(Idempotency, AKeyIsKeptForADayHoweverTheWallClockIsSet) {
  TestBed bed;
  SteppedClock clock;
  Idempotency idempotency(bed.context().get_executor(), bed.ledger(), clock);
  ASSERT_TRUE(bed.run(take_and_finish(idempotency, "first")).ok());
  auto is_kept = [&] {
    auto swept = [&]() -> Task<bool> {
      co_await idempotency.sweep();
      co_return true;
    };
    bed.run(swept());
    auto turn = bed.run(idempotency.take(kKey, "request"));
    EXPECT_TRUE(turn.ok());
    return turn->answer().has_value();
  };
  clock.wall += std::chrono::hours(48);
  clock.steady += std::chrono::hours(1);
  EXPECT_TRUE(is_kept()) << "set forward";
  clock.wall -= std::chrono::hours(96);
  clock.steady += std::chrono::hours(23);
  EXPECT_FALSE(is_kept()) << "set back";
}

// A sandbox that was made for a key is answered about, not made again, after a crash.
TEST(Idempotency, WhatWasMadeBeforeACrashIsKnownAfterIt) {
  TestBed bed;
  Idempotency idempotency = make(bed);
  CreateSandbox request = bed.create_request();
  request.idempotency_key = kKey;
  SandboxId id = SandboxId::draw();
  {
    auto turn = bed.run(idempotency.take(kKey, "request"));
    ASSERT_TRUE(turn.ok());
    auto created = bed.run(bed.sandboxes().create(store::kLocalTenant, request));
    ASSERT_TRUE(created.ok());
    id = created->sandbox->id();
    created->sandbox.reset();
  }
  bed.restart();
  Idempotency next = make(bed);
  ASSERT_TRUE(bed.run(bed.sandboxes().adopt()).ok());
  auto turn = bed.run(next.take(kKey, "request"));
  ASSERT_TRUE(turn.ok());
  EXPECT_FALSE(turn->answer());
  EXPECT_EQ(turn->made().sandbox, id);
}

}  // namespace
}  // namespace atl::sandbox
