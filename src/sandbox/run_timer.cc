#include "sandbox/run_timer.h"

#include <signal.h>

#include <algorithm>
#include <utility>

namespace atl::sandbox {

namespace {

constexpr std::chrono::seconds kInterruptTime{5};
constexpr std::chrono::seconds kBeginTime{30};
constexpr std::chrono::seconds kStartTime{30};
constexpr std::chrono::milliseconds kRetryPause{50};

}  // namespace

void RunTimer::await_interpreter(SteadyTime now) {
  end();
  is_killing_ = false;
  kill_at_ = now + kStartTime;
}

void RunTimer::start(SteadyTime deadline, bool is_told) {
  is_running_ = true;
  has_begun_ = !is_told;
  deadline_ = deadline;
}

void RunTimer::set_begun(SteadyTime now) {
  if (!is_running_) return;
  if (was_interrupted_) wants_interrupt_ = true;
  if (std::exchange(has_begun_, true)) return;
  if (timed_out_ && !is_killing_) kill_at_ = now + kInterruptTime;
}

void RunTimer::end() {
  is_running_ = has_begun_ = timed_out_ = wants_interrupt_ = was_interrupted_ = false;
  deadline_.reset();
  if (!is_killing_) kill_at_.reset();
}

void RunTimer::kill(SteadyTime now) {
  is_killing_ = true;
  kill_at_ = now;
}

std::optional<int> RunTimer::due(SteadyTime now) {
  if (deadline_ && now >= *deadline_) {
    deadline_.reset();
    timed_out_ = wants_interrupt_ = true;
    if (!is_killing_) kill_at_ = now + (has_begun_ ? kInterruptTime : kBeginTime);
  }
  if (kill_at_ && now >= *kill_at_) {
    is_killing_ = true;
    return SIGKILL;
  }
  if (wants_interrupt_ && has_begun_ && now >= interrupt_at_) return SIGINT;
  return std::nullopt;
}

void RunTimer::set_sent(int signal_number, bool was_sent, SteadyTime now) {
  if (signal_number == SIGKILL) {
    kill_at_ = was_sent ? SteadyTime::max() : now + kRetryPause;
  } else if (was_sent) {
    wants_interrupt_ = false;
    was_interrupted_ = true;
  } else {
    interrupt_at_ = now + kRetryPause;
  }
}

SteadyTime RunTimer::next() const {
  SteadyTime next =
      std::min(deadline_.value_or(SteadyTime::max()), kill_at_.value_or(SteadyTime::max()));
  return wants_interrupt_ && has_begun_ ? std::min(next, interrupt_at_) : next;
}

void RunTimer::shift(SteadyTime::duration pause) {
  for (std::optional<SteadyTime>* time : {&deadline_, &kill_at_})
    if (*time && **time != SteadyTime::max()) **time += pause;
}

}  // namespace atl::sandbox
