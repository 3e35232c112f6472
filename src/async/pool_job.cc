#include "async/pool_job.h"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace atl {

namespace {

Task<void> invoke(std::shared_ptr<PoolJob> job) {
  job->run();
  co_return;
}

}  // namespace

Task<void> run_job(boost::asio::thread_pool& pool, std::shared_ptr<PoolJob> job) {
  auto invocation = invoke(std::move(job));
  auto executor = pool.get_executor();
  auto undisturbed = boost::asio::bind_cancellation_slot(boost::asio::cancellation_slot(),
                                                         boost::asio::use_awaitable);
  co_await boost::asio::co_spawn(executor, std::move(invocation), undisturbed);
}

}  // namespace atl
