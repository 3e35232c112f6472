// ContextRun: one run of code in a context, from the request to the verdict. What it printed and
// said is in the logs of the context's exec; a run only knows where its part begins and ends.
//
// Lives on the io_context thread. Held by shared_ptr because handlers that wait for its end may
// outlive its context.
#pragma once

#include <memory>

#include "base/clock.h"
#include "isolate/event.h"
#include "sandbox/exec.h"
#include "store/context_rows.h"

namespace atl::sandbox {

class ContextRun {
 public:
  ContextRun(boost::asio::any_io_executor executor, store::RunRow row, std::shared_ptr<Exec> exec)
      : row_(std::move(row)), exec_(std::move(exec)), changed_(std::move(executor)) {}

  const store::RunRow& row() const { return row_; }
  store::RunRow& row() { return row_; }
  bool ended() const { return row_.state == "ended"; }
  // The interpreter that it runs or ran in; null while it waits, and if it never ran.
  const std::shared_ptr<Exec>& exec() const { return exec_; }
  void set_exec(std::shared_ptr<Exec> exec) { exec_ = std::move(exec); }

  // Waits until it has changed, or its interpreter has said or printed something; false when the
  // time ran out first or the waiting coroutine was cancelled.
  Task<bool> wait_changed(SteadyTime deadline = SteadyTime::max()) {
    return changed_.wait_until(deadline);
  }
  void notify() { changed_.notify_all(); }

 private:
  store::RunRow row_;
  std::shared_ptr<Exec> exec_;  // shared with the table of execs
  Event changed_;
};

}  // namespace atl::sandbox
