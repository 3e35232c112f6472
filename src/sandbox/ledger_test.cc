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

}  // namespace
}  // namespace atl::sandbox
