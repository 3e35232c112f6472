// Ledger: the catalog of rows, reached from the io_context thread. SQLite may wait for the disk, so
// all its work is done by one thread of its own, in the order in which it was asked for.
//
//   auto insert = [row](store::Catalog& catalog) { return catalog.sandboxes().insert(row); };
//   auto done = co_await ledger.run(insert);
//
// The work must own what it uses: it may run after its asker has gone. An asker that is cancelled
// gets its answer all the same, and sees at its next wait that it was.
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
#include "store/catalog.h"

namespace atl::sandbox {

class Ledger {
 public:
  explicit Ledger(std::unique_ptr<store::Catalog> catalog)
      : catalog_(std::move(catalog)), thread_(1) {}
  ~Ledger() { finish(); }
  // Finishes the work that was asked for. Must be called before the askers' io_context is
  // destroyed, because answers are posted to it.
  void finish() { thread_.join(); }

  template <typename Work>
  Task<std::invoke_result_t<Work, store::Catalog&>> run(Work work) {
    // Shared, because the job may still be running when the asker is destroyed at shutdown.
    auto result = std::make_shared<std::optional<std::invoke_result_t<Work, store::Catalog&>>>();
    auto job = invoke(std::move(work), *catalog_, result);
    auto executor = thread_.get_executor();
    // A job that is cancelled before its turn would not be done, and its row never stored.
    auto undisturbed = boost::asio::bind_cancellation_slot(boost::asio::cancellation_slot(),
                                                           boost::asio::use_awaitable);
    co_await boost::asio::co_spawn(executor, std::move(job), undisturbed);
    co_return std::move(**result);
  }

 private:
  template <typename Work, typename Slot>
  static Task<void> invoke(Work work, store::Catalog& catalog, Slot slot) {
    slot->emplace(work(catalog));
    co_return;
  }

  std::unique_ptr<store::Catalog> catalog_;
  boost::asio::thread_pool thread_;
};

}  // namespace atl::sandbox
