// Ledger: the catalog of rows, reached from the io_context thread. SQLite may wait for the disk, so
// all its work is done by one thread of its own, in the order in which it was asked for.
//
//   auto insert = [row](store::Catalog& catalog) { return catalog.sandboxes().insert(row); };
//   auto done = co_await ledger.run(insert);
//
// A number of its sequence is drawn at once. Work whose numbers are drawn in the turn in which it
// is handed over is done in the order of the numbers.
//
// Work that ends or frees something goes by run_to_free(): when the disk is full it is tried again
// with room that is kept back for it.
//
// Nothing is done in a database whose file was moved or replaced: what is written there is lost.
//
// The work must own what it uses: it may run after its asker has gone. An asker that is cancelled
// gets its answer all the same, and sees at its next wait that it was.
#pragma once

#include <errno.h>

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <boost/asio/thread_pool.hpp>

#include "async/pool_job.h"
#include "base/log.h"
#include "store/ballast.h"
#include "store/catalog.h"
#include "store/lost_found.h"

namespace atl::sandbox {

class Ledger {
 public:
  explicit Ledger(std::unique_ptr<store::Catalog> catalog,
                  std::optional<store::Ballast> ballast = std::nullopt)
      : pairing_(catalog->epoch().pairing()),
        joined_at_ms_(catalog->epoch().joined_at_ms()),
        catalog_(std::move(catalog)),
        ballast_(std::move(ballast)),
        thread_(1) {}
  ~Ledger() { finish(); }
  // Finishes the work that was asked for. Must be called before the askers' io_context is
  // destroyed, because answers are posted to it.
  void finish() { thread_.join(); }
  int64_t draw() { return catalog_->sequence().draw(); }

  // What is to become of files that no row names, and since when an operator has said so.
  store::Pairing pairing() const { return pairing_; }
  store::Unlisted unlisted() const {
    bool keeps = pairing_ == store::Pairing::kSettingAside;
    return keeps ? store::Unlisted::kSetAside : store::Unlisted::kRemove;
  }
  int64_t joined_at_ms() const { return joined_at_ms_; }
  Task<Result<void>> finish_pairing() {
    auto finish = [](store::Catalog& catalog) { return catalog.epoch().finish_pairing(); };
    auto finished = co_await run(finish);
    if (finished) pairing_ = store::Pairing::kPaired;
    co_return finished;
  }

  template <typename Work>
  Task<std::invoke_result_t<Work, store::Catalog&>> run(Work work) {
    auto job = [work = std::move(work), &catalog = *catalog_]() mutable {
      return run_in(catalog, work);
    };
    return run_on(thread_, std::move(job));
  }
  // The work may be done more than once; what failed has left nothing.
  template <typename Work>
  Task<std::invoke_result_t<Work, store::Catalog&>> run_to_free(Work work) {
    auto job = [work = std::move(work), this]() mutable {
      auto done = run_in(*catalog_, work);
      while (!done && is_full(done.error()) && ballast_ && ballast_->give_up())
        done = run_in(*catalog_, work);
      return done;
    };
    return run_on(thread_, std::move(job));
  }
  // Keeps that room back again, if there is room.
  Task<void> restore_ballast() {
    auto job = [this] {
      if (ballast_) ballast_->restore();
      return true;
    };
    co_await run_on(thread_, std::move(job));
  }

 private:
  static bool is_full(const Error& error) {
    return error.code() == Code::kExhausted || error.system_errno() == ENOSPC;
  }

  template <typename Work>
  static std::invoke_result_t<Work&, store::Catalog&> run_in(store::Catalog& catalog, Work& work) {
    using Answer = std::invoke_result_t<Work&, store::Catalog&>;
    if constexpr (std::is_constructible_v<Answer, Error>)
      if (auto there = catalog.epoch().check_place(); !there)
        return Answer(std::move(there).error());
    Answer answer = work(catalog);
    auto published = catalog.epoch().publish();
    // An older copy might not be known as one; nothing else depends on it.
    if (!published) log_error("the epoch file is behind", {published.error()});
    return answer;
  }

  store::Pairing pairing_;
  int64_t joined_at_ms_;
  std::unique_ptr<store::Catalog> catalog_;
  std::optional<store::Ballast> ballast_;
  boost::asio::thread_pool thread_;
};

}  // namespace atl::sandbox
