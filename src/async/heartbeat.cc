#include "async/heartbeat.h"

#include <fcntl.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/this_coro.hpp>

#include "async/as_tuple.h"
#include "base/check.h"

namespace atl {

namespace asio = boost::asio;

Task<void> keep_beating(linux::Heartbeat heartbeat) {
  auto executor = co_await asio::this_coro::executor;
  // The descriptor that is waited for belongs to who waits.
  int copy = fcntl(heartbeat.fd(), F_DUPFD_CLOEXEC, 0);
  ATOLL_CHECK(copy >= 0);
  asio::posix::stream_descriptor waiting(executor, copy);
  while (true) {
    auto [error] = co_await waiting.async_wait(asio::posix::descriptor_base::wait_read, kAsTuple);
    if (error) co_return;
    heartbeat.beat();
  }
}

}  // namespace atl
