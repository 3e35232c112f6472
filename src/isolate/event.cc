#include "isolate/event.h"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/this_coro.hpp>

#include "async/as_tuple.h"

namespace atl {

namespace asio = boost::asio;

// One timer each, with its own deadline, instead of racing a deadline against a common one: a race
// costs two more coroutines.
class Event::Waiter {
 public:
  Waiter(const Event& event, asio::steady_timer::time_point deadline)
      : timer(event.executor_, deadline),
        waiters_(event.waiters_),
        generation_(waiters_->generation),
        place_(waiters_->timers.insert(waiters_->timers.end(), &timer)) {}
  ~Waiter() { waiters_->timers.erase(place_); }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  bool notified() const { return waiters_->generation != generation_; }

  asio::steady_timer timer;

 private:
  std::shared_ptr<Waiters> waiters_;
  unsigned long generation_;
  std::list<asio::steady_timer*>::iterator place_;
};

Event::Event(asio::any_io_executor executor)
    : executor_(std::move(executor)), waiters_(std::make_shared<Waiters>()) {}

Task<void> Event::wait() {
  Waiter waiter(*this, asio::steady_timer::time_point::max());
  auto undisturbed = asio::bind_cancellation_slot(asio::cancellation_slot(), kAsTuple);
  co_await waiter.timer.async_wait(undisturbed);
}

Task<bool> Event::wait_until(std::chrono::steady_clock::time_point deadline) {
  // A signal reaches only what is pending. Between a notification and its waiter's turn nothing
  // is, but the coroutine remembers that it was cancelled.
  auto state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() != asio::cancellation_type::none) co_return false;
  Waiter waiter(*this, deadline);
  co_await waiter.timer.async_wait(kAsTuple);
  co_return waiter.notified();
}

void Event::notify_all() {
  ++waiters_->generation;
  for (asio::steady_timer* timer : waiters_->timers) timer->cancel();
}

}  // namespace atl
