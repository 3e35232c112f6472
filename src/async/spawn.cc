#include "async/spawn.h"

#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace atl {

void spawn(boost::asio::any_io_executor executor, Task<void> task) {
  // detached: owned by what the task itself holds, as each caller says
  boost::asio::co_spawn(std::move(executor), std::move(task), boost::asio::detached);
}

Task<bool> wait(boost::asio::steady_timer& timer) {
  constexpr auto kToken = boost::asio::as_tuple(boost::asio::use_awaitable);
  auto [error] = co_await timer.async_wait(kToken);
  co_return !error;
}

}  // namespace atl
