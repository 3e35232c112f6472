// Sandboxes whose time is up, or that could not be freed at once.
#include <algorithm>

#include <boost/asio/steady_timer.hpp>

#include "async/spawn.h"
#include "base/log.h"
#include "sandbox/pause.h"
#include "sandbox/sandboxes.h"

namespace atl::sandbox {

namespace {

constexpr std::chrono::milliseconds kLeastPause{100};  // between two sweeps
constexpr std::chrono::milliseconds kRetryPause{500};  // of what could not be freed
constexpr std::chrono::hours kLongestRest{1};
constexpr std::chrono::seconds kPressurePause{1};    // between two looks at the host's memory
constexpr std::chrono::minutes kArtifactsPause{10};  // between two looks for expired ones

// Its deletion was begun, or what it held is still there: the sweep goes on with it.
bool is_unfinished(const Sandbox& sandbox) {
  return sandbox.state() == State::kDeleting ||
         (sandbox.state() == State::kFailed && !sandbox.isolate_removed());
}

bool is_expired(const Sandbox& sandbox, SteadyTime now) {
  std::optional<SteadyTime> end = sandbox.lifetime().deadline();
  return sandbox.state() != State::kCreating && end && *end <= now;
}

}  // namespace

Task<void> Sandboxes::sweep() {
  SteadyTime now = services_.clock.steady_now();
  if (now >= artifacts_swept_ + kArtifactsPause) {
    artifacts_swept_ = now;
    auto swept = services_.artifacts.sweep(services_.expiry_time.now_ms());
    if (!swept) log_warning("expired artifacts could not be removed", {swept.error()});
  }
  std::vector<std::shared_ptr<Sandbox>> due;
  for (const auto& [id, sandbox] : all_)
    if (is_unfinished(*sandbox) || is_expired(*sandbox, services_.clock.steady_now()) ||
        may_release(*sandbox, Need::kTime))
      due.push_back(sandbox);
  for (std::shared_ptr<Sandbox> sandbox : due) {
    // Looked at again: while the others were ended it may have been put to use, or made anew.
    auto found = all_.find(sandbox->id());
    if (found == all_.end() || found->second != sandbox) continue;
    Result<void> done;
    bool expired = is_expired(*sandbox, services_.clock.steady_now());
    if (expired && sandbox->state() == State::kRunning && sandbox->row().on_ttl == "pause") {
      done = co_await Pause::begin(sandbox);
    } else if (expired || sandbox->state() == State::kDeleting) {
      done = co_await delete_now(sandbox);
    } else if (is_unfinished(*sandbox)) {
      done = co_await free_isolate(sandbox);
    } else if (may_release(*sandbox, Need::kTime)) {
      done = co_await release(sandbox, Need::kTime);
    }
    if (!done) log_warning("sweep failed", {{"sandbox", sandbox->id().view()}, done.error()});
  }
  co_await relieve();
}

SteadyTime Sandboxes::next_due() const {
  SteadyTime now = services_.clock.steady_now();
  SteadyTime next = now + kLongestRest;
  for (const auto& [id, sandbox] : all_) {
    if (is_unfinished(*sandbox) || sandbox->isolate_left_) next = std::min(next, now + kRetryPause);
    std::optional<SteadyTime> memory_end = sandbox->lifetime().memory_end();
    bool holds_memory = sandbox->state() == State::kPaused && !sandbox->row().released;
    // One that is over already was tried, and could not be given back.
    if (memory_end && holds_memory)
      next = std::min(next, *memory_end > now ? *memory_end : now + kRetryPause);
    if (may_release(*sandbox, Need::kPressure)) next = std::min(next, now + kPressurePause);
    // A busy one cannot be idle for long enough before this; it is looked at again then.
    std::optional<SteadyTime> end = sandbox->lifetime().earliest_deadline();
    if (end && sandbox->state() != State::kCreating) next = std::min(next, *end);
  }
  return std::max(next, now + kLeastPause);
}

Task<void> Sandboxes::wait_due() {
  wake_ = next_due();
  auto rest = wake_ - services_.clock.steady_now();
  auto until = std::chrono::steady_clock::now() + rest;
  bool notified = co_await due_.wait_until(until);
  wake_ = SteadyTime::max();
  if (!notified) co_return;
  // Many creates or failures at once are worth one sweep, not one each.
  boost::asio::steady_timer pause(services_.executor, kLeastPause);
  co_await wait(pause);
}

}  // namespace atl::sandbox
