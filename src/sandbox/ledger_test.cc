#include "sandbox/ledger.h"

#include <future>

#include <boost/asio/cancellation_signal.hpp>
#include <gtest/gtest.h>

#include "async/spawn.h"
#include "isolate/event.h"
#include "sandbox/test_bed.h"

namespace atl::sandbox {
namespace {

namespace asio = boost::asio;

struct Asker {
  bool answered = false;
  bool waited = false;
  bool over = false;
};

Task<void> ask_and_wait(Ledger& ledger, Event& event, Asker& asker) {
  auto as_values = asio::this_coro::throw_if_cancelled(false);
  co_await as_values;
  auto work = [](store::Catalog&) { return true; };
  asker.answered = co_await ledger.run(work);
  auto far = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  asker.waited = co_await event.wait_until(far);
}

TEST(Ledger, WorkOfACancelledAskerIsDoneAndTheAskerEndsAfterIt) {
  TestBed bed;
  std::promise<void> go;
  auto hold = [&go](store::Catalog&) {
    go.get_future().wait();
    return true;
  };
  auto holding = [&](Ledger& ledger) -> Task<void> { co_await ledger.run(hold); };
  // detached: owned by the bed, whose ledger it waits for
  spawn(bed.context().get_executor(), holding(bed.ledger()));
  Event event(bed.context().get_executor());
  asio::cancellation_signal stop;
  Asker asker;
  auto token = asio::bind_cancellation_slot(stop.slot(),
                                            [&asker](std::exception_ptr) { asker.over = true; });
  asio::co_spawn(bed.context(), ask_and_wait(bed.ledger(), event, asker), token);
  for (int i = 0; i < 40; ++i) bed.step();
  stop.emit(asio::cancellation_type::terminal);
  for (int i = 0; i < 40; ++i) bed.step();
  EXPECT_FALSE(asker.answered);
  go.set_value();
  EXPECT_TRUE(step_until(bed, [&] { return asker.over; }));
  EXPECT_TRUE(asker.answered);
  EXPECT_FALSE(asker.waited);
}

// A full disk is played by the work; what it is given is real.
TEST(Ledger, WorkThatFreesIsTriedAgainWithTheRoomThatIsKeptBack) {
  TestBed bed;
  std::string path = bed.directory() + "/ballast";
  auto catalog = store::Catalog::open(bed.directory() + "/another.db");
  auto ballast = store::Ballast::open(path);
  ASSERT_TRUE(catalog.ok() && ballast.ok());
  Ledger ledger(std::move(*catalog), std::move(*ballast));
  auto needs = [path](uint64_t bytes) {
    return [path, bytes](store::Catalog&) -> Result<void> {
      uint64_t given = store::kBallastBytes - std::filesystem::file_size(path);
      if (given >= bytes) return {};
      return Error(Code::kExhausted, "database or disk is full");
    };
  };
  auto done = bed.run(ledger.run(needs(1)));
  EXPECT_FALSE(done.ok()) << "other work gets none of it";
  done = bed.run(ledger.run_to_free(needs(store::kBallastPieceBytes + 1)));
  EXPECT_TRUE(done.ok());
  EXPECT_EQ(std::filesystem::file_size(path), store::kBallastBytes - 2 * store::kBallastPieceBytes);
  done = bed.run(ledger.run_to_free(needs(store::kBallastBytes + 1)));
  EXPECT_EQ(done.error().code(), Code::kExhausted);
}

}  // namespace
}  // namespace atl::sandbox
