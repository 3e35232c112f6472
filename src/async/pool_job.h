// Work for a thread that may wait for the disk or the processor, asked for by a coroutine.
//
//   auto digest = [bytes] { return sha256(bytes); };
//   auto done = co_await run_on(pool, digest);
#pragma once

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <boost/asio/thread_pool.hpp>

#include "async/task.h"

namespace atl {

class PoolJob {
 public:
  virtual ~PoolJob() = default;
  virtual void run() = 0;
};

// Returns when the job has run, on the caller's executor. A caller that is cancelled waits for the
// job all the same: a job that was dropped before its turn would not be done.
Task<void> run_job(boost::asio::thread_pool& pool, std::shared_ptr<PoolJob> job);

template <typename Result>
class ResultJob : public PoolJob {
 public:
  Result take() { return std::move(*result_); }

 protected:
  std::optional<Result> result_;
};

template <typename Work>
class WorkJob final : public ResultJob<std::invoke_result_t<Work>> {
 public:
  explicit WorkJob(Work work) : work_(std::move(work)) {}
  void run() override { this->result_.emplace(work_()); }

 private:
  Work work_;
};

// One coroutine for each type of result, not for each piece of work.
template <typename Result>
Task<Result> result_of(boost::asio::thread_pool& pool, std::shared_ptr<ResultJob<Result>> job) {
  std::shared_ptr<PoolJob> running = job;
  co_await run_job(pool, running);
  co_return job->take();
}

// The work must own what it uses: at shutdown it may outlast its caller.
template <typename Work>
Task<std::invoke_result_t<Work>> run_on(boost::asio::thread_pool& pool, Work work) {
  return result_of<std::invoke_result_t<Work>>(pool,
                                               std::make_shared<WorkJob<Work>>(std::move(work)));
}

}  // namespace atl
