#include "warden/kernel_memory_watch.h"

#include <algorithm>

namespace atl::warden {
namespace {

using std::chrono::milliseconds;

// Often enough that what grows by 250 MiB a second is seen before it is much more than the limit.
constexpr milliseconds kCalmPause{200};
constexpr milliseconds kTrialPause{50};
// Growth that takes longer than that for a step cannot be told from what a host does anyway.
constexpr double kLongestStepMs = 2000;
constexpr double kShortestTrialMs = 200;
constexpr double kLongestTrialMs = 4000;
// Until what was ended has given back what it held.
constexpr double kSettlingMs = 500;
// Without a result: all go on then, and it begins anew.
constexpr std::chrono::seconds kLongestSearch{10};
// A trial lasts as long as so many steps took before.
constexpr double kStepsInTrial = 2;
// Of the former speed: less is standing still.
constexpr double kStillShare = 0.25;
// Of one processor: whoever is less in the kernel does not make it grow.
constexpr double kLeastBusyShare = 0.01;
constexpr double kLeastStepBytes = 2 << 20;
constexpr double kMostStepBytes = 8 << 20;

}  // namespace

KernelMemoryWatch::KernelMemoryWatch(uint64_t growth_bytes)
    : growth_bytes_(growth_bytes),
      step_bytes_(
          std::clamp(static_cast<double>(growth_bytes) / 16, kLeastStepBytes, kMostStepBytes)) {}

milliseconds KernelMemoryWatch::pause() const {
  return state_ == State::kCalm ? kCalmPause : kTrialPause;
}

void KernelMemoryWatch::pass_over(const SandboxId& id) {
  std::erase(stopped_, id);
  passed_over_.insert(id);
}

std::vector<WatchOrder> KernelMemoryWatch::look(SteadyTime now, const KernelMemory& memory,
                                                const std::vector<Suspect>& suspects) {
  uint64_t bytes = memory.uncharged();
  follow_drift(now, bytes);
  switch (state_) {
    case State::kCalm:
      if (is_over(bytes)) {
        state_ = State::kMeasuring;
        has_mark_ = false;
      }
      return {};
    case State::kMeasuring:
      return measure(now, bytes, suspects);
    case State::kStopping:
      return judge_stop(now, bytes, suspects);
    case State::kGoingOn:
      return judge_going_on(now, bytes, suspects);
    case State::kSettling:
      return elapsed_ms(now) < kSettlingMs ? Orders() : let_next_go_on(now, bytes);
  }
  return {};
}

// What is usual follows downwards at once and upwards slowly.
void KernelMemoryWatch::follow_drift(SteadyTime now, uint64_t bytes) {
  auto current = static_cast<double>(bytes);
  if (!has_looked_) usual_bytes_ = current;
  double seconds = has_looked_ ? std::chrono::duration<double>(now - last_look_).count() : 0;
  usual_bytes_ = std::min(usual_bytes_ + seconds * kDriftBytesPerSecond, current);
  last_look_ = now;
  has_looked_ = true;
}

void KernelMemoryWatch::set_mark(SteadyTime now, uint64_t bytes,
                                 const std::vector<Suspect>& suspects) {
  mark_ = {.at = now, .bytes = bytes, .system_us = {}};
  for (const Suspect& one : suspects) mark_.system_us[one.id] = one.system_us;
  has_mark_ = true;
}

double KernelMemoryWatch::elapsed_ms(SteadyTime now) const {
  return std::chrono::duration<double, std::milli>(now - mark_.at).count();
}

double KernelMemoryWatch::grown(uint64_t bytes) const {
  return static_cast<double>(bytes) - static_cast<double>(mark_.bytes);
}

bool KernelMemoryWatch::is_up(SteadyTime now) const { return elapsed_ms(now) >= trial_ms_; }

// Until it has grown by a step, which says how fast it grows.
std::vector<WatchOrder> KernelMemoryWatch::measure(SteadyTime now, uint64_t bytes,
                                                   const std::vector<Suspect>& suspects) {
  if (!is_over(bytes)) {
    state_ = State::kCalm;
    return {};
  }
  if (!has_mark_ || grown(bytes) < 0 || elapsed_ms(now) > kLongestStepMs) {
    set_mark(now, bytes, suspects);
    return {};
  }
  if (grown(bytes) < step_bytes_) return {};
  passed_over_.clear();
  return stop_next(now, bytes, suspects);
}

// It has grown since the mark: how fast is what the next trial is held against.
void KernelMemoryWatch::take_speed(SteadyTime now, uint64_t bytes) {
  bytes_per_ms_ = grown(bytes) / elapsed_ms(now);
  trial_ms_ =
      std::clamp(kStepsInTrial * step_bytes_ / bytes_per_ms_, kShortestTrialMs, kLongestTrialMs);
}

// The one that was longest in the kernel since the mark.
std::vector<WatchOrder> KernelMemoryWatch::stop_next(SteadyTime now, uint64_t bytes,
                                                     const std::vector<Suspect>& suspects) {
  const Suspect* busiest = nullptr;
  double most_us = kLeastBusyShare * elapsed_ms(now) * 1000;
  for (const Suspect& one : suspects) {
    bool is_stopped = std::find(stopped_.begin(), stopped_.end(), one.id) != stopped_.end();
    if (is_stopped || passed_over_.contains(one.id)) continue;
    auto before = mark_.system_us.find(one.id);
    uint64_t since = before == mark_.system_us.end() ? 0 : before->second;
    double spent_us = one.system_us > since ? static_cast<double>(one.system_us - since) : 0;
    if (spent_us < most_us) continue;
    most_us = spent_us;
    busiest = &one;
  }
  if (busiest == nullptr || stopped_.size() >= kMaxSuspects) return give_up(bytes);
  stopped_.push_back(busiest->id);
  last_progress_ = now;
  on_trial_.reset();
  take_speed(now, bytes);
  set_mark(now, bytes, suspects);
  state_ = State::kStopping;
  return {{WatchOrder::What::kStop, busiest->id}};
}

std::vector<WatchOrder> KernelMemoryWatch::judge_stop(SteadyTime now, uint64_t bytes,
                                                      const std::vector<Suspect>& suspects) {
  if (grown(bytes) < step_bytes_ && !is_up(now)) return {};
  double expected = bytes_per_ms_ * elapsed_ms(now);
  if (grown(bytes) < kStillShare * expected && is_up(now)) return let_next_go_on(now, bytes);
  return stop_next(now, bytes, suspects);
}

// The last one that was stopped first: it stopped the growth.
std::vector<WatchOrder> KernelMemoryWatch::let_next_go_on(SteadyTime now, uint64_t bytes) {
  // Below the limit again nobody needs to be found: ordinary work makes kernel memory come and go.
  bool is_done = stopped_.empty() || !is_over(bytes);
  if (is_done || now - last_progress_ > kLongestSearch) {
    state_ = State::kMeasuring;
    has_mark_ = false;
    return all_go_on();
  }
  SandboxId id = stopped_.back();
  stopped_.pop_back();
  if (on_trial_ != id) proofs_ = 0;
  on_trial_ = id;
  set_mark(now, bytes, {});
  state_ = State::kGoingOn;
  return {{WatchOrder::What::kGoOn, id}};
}

std::vector<WatchOrder> KernelMemoryWatch::judge_going_on(SteadyTime now, uint64_t bytes,
                                                          const std::vector<Suspect>& suspects) {
  bool grows = grown(bytes) >= step_bytes_ / 2 &&
               grown(bytes) >= kStillShare * bytes_per_ms_ * elapsed_ms(now);
  if (!grows) return is_up(now) ? let_next_go_on(now, bytes) : Orders();
  take_speed(now, bytes);
  set_mark(now, bytes, suspects);
  if (++proofs_ == kProofs) {
    state_ = State::kSettling;
    last_progress_ = now;
    return {{WatchOrder::What::kEnd, *on_trial_}};
  }
  stopped_.push_back(*on_trial_);
  state_ = State::kStopping;
  return {{WatchOrder::What::kStop, *on_trial_}};
}

// It grows although all that are busy stand still: what there is now is usual.
std::vector<WatchOrder> KernelMemoryWatch::give_up(uint64_t bytes) {
  usual_bytes_ = static_cast<double>(bytes);
  state_ = State::kCalm;
  return all_go_on();
}

std::vector<WatchOrder> KernelMemoryWatch::all_go_on() {
  std::vector<WatchOrder> orders;
  for (const SandboxId& id : stopped_) orders.push_back({WatchOrder::What::kGoOn, id});
  stopped_.clear();
  on_trial_.reset();
  return orders;
}

}  // namespace atl::warden
