#include "isolate/event.h"

#include <vector>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

namespace atl {
namespace {

namespace asio = boost::asio;
using std::chrono::steady_clock;

// Waits so many times, like a handler that looks at its condition in between.
Task<void> wait_times(Event& event, size_t times, std::vector<bool>& notified) {
  auto as_values = asio::this_coro::throw_if_cancelled(false);
  co_await as_values;
  while (notified.size() < times) {
    auto far = steady_clock::now() + std::chrono::minutes(1);
    bool changed = co_await event.wait_until(far);
    notified.push_back(changed);
  }
}

struct Waiting {
  explicit Waiting(size_t times) {
    auto token = asio::bind_cancellation_slot(stop.slot(), [](std::exception_ptr) {});
    asio::co_spawn(context, wait_times(event, times, notified), token);
    context.poll();
  }
  asio::io_context context;
  Event event{context.get_executor()};
  asio::cancellation_signal stop;
  std::vector<bool> notified;
};

TEST(Event, WakesWhoWaits) {
  Waiting waiting(2);
  EXPECT_TRUE(waiting.notified.empty());
  for (int i = 0; i < 2; ++i) {
    waiting.event.notify_all();
    waiting.context.poll();
  }
  EXPECT_EQ(waiting.notified, std::vector<bool>({true, true}));
}

TEST(Event, CancellationEndsAWait) {
  Waiting waiting(1);
  waiting.stop.emit(asio::cancellation_type::terminal);
  waiting.context.poll();
  EXPECT_EQ(waiting.notified, std::vector<bool>({false}));
}

TEST(Event, CancellationJustAfterANotificationIsNotLost) {
  Waiting waiting(3);
  waiting.event.notify_all();
  waiting.stop.emit(asio::cancellation_type::terminal);
  waiting.context.poll();
  EXPECT_EQ(waiting.notified, std::vector<bool>({true, false, false}));
}

TEST(Event, WorkThatGoesOnIsNotCancelled) {
  asio::io_context context;
  Event event(context.get_executor());
  asio::cancellation_signal stop;
  bool woken = false;
  auto work = [&]() -> Task<void> {
    auto as_values = asio::this_coro::throw_if_cancelled(false);
    co_await as_values;
    co_await event.wait();
    woken = true;
  };
  auto token = asio::bind_cancellation_slot(stop.slot(), [](std::exception_ptr) {});
  asio::co_spawn(context, work(), token);
  context.poll();
  stop.emit(asio::cancellation_type::terminal);
  context.poll();
  EXPECT_FALSE(woken);
  event.notify_all();
  context.poll();
  EXPECT_TRUE(woken);
}

}  // namespace
}  // namespace atl
