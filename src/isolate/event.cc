#include "isolate/event.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace atl {

namespace asio = boost::asio;
constexpr auto kToken = asio::as_tuple(asio::use_awaitable);

Event::Event(asio::any_io_executor executor)
    : executor_(executor), never_(executor, asio::steady_timer::time_point::max()) {}

Task<void> Event::wait() { co_await never_.async_wait(kToken); }

Task<bool> Event::wait_until(std::chrono::steady_clock::time_point deadline) {
  using namespace asio::experimental::awaitable_operators;
  unsigned long before = generation_;
  asio::steady_timer timer(executor_, deadline);
  auto notified = never_.async_wait(kToken);
  auto expired = timer.async_wait(kToken);
  co_await (std::move(notified) || std::move(expired));
  co_return generation_ != before;
}

void Event::notify_all() {
  ++generation_;
  never_.cancel();
}

}  // namespace atl
