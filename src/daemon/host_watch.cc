#include "daemon/host_watch.h"

#include <sys/statvfs.h>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include "async/as_tuple.h"
#include "async/spawn.h"

namespace atl::daemon {
namespace {

constexpr std::chrono::seconds kPause{1};
// With less nothing can be kept for certain, whatever it is.
constexpr uint64_t kFullBytes = 64ull << 20;

}  // namespace

void HostWatch::begin(boost::asio::any_io_executor executor) {
  // detached: the daemon's own life
  spawn(std::move(executor), run());
}

Task<void> HostWatch::run() {
  auto executor = co_await boost::asio::this_coro::executor;
  while (true) {
    look_at_disk();
    co_await look_at_pool();
    co_await ledger_.restore_ballast();
    boost::asio::steady_timer timer(executor, kPause);
    co_await timer.async_wait(kAsTuple);
  }
}

void HostWatch::look_at_disk() {
  struct statvfs space;
  if (statvfs(state_directory_.c_str(), &space) != 0)
    return health_.report("disk", Error::system("look at the disk").message());
  uint64_t free = space.f_bavail * space.f_frsize;
  if (free >= kFullBytes) return health_.report_well("disk");
  health_.report("disk", "the disk of the state directory is full: " + std::to_string(free >> 20) +
                             " MiB are free");
}

Task<void> HostWatch::look_at_pool() {
  auto probed = co_await driver_.probe();
  if (probed) {
    health_.report_well("pool");
  } else if (probed.error().reason() == "pool_unavailable") {
    Error cause =
        Error::from_errno("the layer pool cannot be written", probed.error().system_errno());
    health_.report("pool", cause.message());
  }
}

}  // namespace atl::daemon
