// Work for a thread that may wait for the disk or the processor, asked for by a coroutine.
#pragma once

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "isolate/task.h"

namespace atl::sandbox {

namespace detail {

template <typename Work, typename Slot>
Task<void> invoke(Work work, Slot slot) {
  slot->emplace(work());
  co_return;
}

}  // namespace detail

// The work must own what it uses: at shutdown it may outlast its asker.
template <typename Work>
Task<std::invoke_result_t<Work>> run_on(boost::asio::thread_pool& pool, Work work) {
  auto result = std::make_shared<std::optional<std::invoke_result_t<Work>>>();
  auto job = detail::invoke(std::move(work), result);
  auto executor = pool.get_executor();
  // A job that is cancelled before its turn would give no answer.
  auto undisturbed = boost::asio::bind_cancellation_slot(boost::asio::cancellation_slot(),
                                                         boost::asio::use_awaitable);
  co_await boost::asio::co_spawn(executor, std::move(job), undisturbed);
  co_return std::move(**result);
}

}  // namespace atl::sandbox
