#include "sandbox/lifetime.h"

#include <algorithm>
#include <utility>

namespace atl::sandbox {

using std::chrono::milliseconds;

namespace {

// `now`: that of the sandbox, whose clock may stand still.
std::optional<SteadyTime> ttl_end_of(const store::SandboxRow& row, const Clock& clock,
                                     SteadyTime now) {
  if (row.ttl_ms == 0) return std::nullopt;
  // Wall time only decides how much was left when atolld (re)started; from there on the timer is
  // steady.
  bool paused = row.paused_at_ms != 0;
  int64_t until_ms = paused ? row.paused_at_ms : to_milliseconds(clock.wall_now());
  int64_t age_ms = until_ms - row.ttl_from_ms;
  auto left_ms = static_cast<int64_t>(row.ttl_ms) - std::max<int64_t>(age_ms, 0);
  return now + milliseconds(std::max<int64_t>(left_ms, 0));
}

}  // namespace

Lifetime::Lifetime(const store::SandboxRow& row, const Clock& clock, const ExecTable& execs,
                   const Channels& channels, const Contexts& contexts)
    : clock_(clock),
      execs_(execs),
      channels_(channels),
      contexts_(contexts),
      idle_ttl_(row.idle_ttl_ms),
      ttl_end_(ttl_end_of(row, clock, clock.steady_now())),
      touched_(clock.steady_now()),
      files_only_after_(row.files_only_after_ms) {
  if (row.paused_at_ms == 0) return;
  hold();
  int64_t age_ms = to_milliseconds(clock.wall_now()) - row.paused_at_ms;
  paused_from_ = clock.steady_now() - milliseconds(std::max<int64_t>(age_ms, 0));
}

void Lifetime::change(const store::SandboxRow& before, const store::SandboxRow& after) {
  idle_ttl_ = milliseconds(after.idle_ttl_ms);
  files_only_after_ = milliseconds(after.files_only_after_ms);
  if (after.ttl_ms != before.ttl_ms || after.ttl_from_ms != before.ttl_from_ms)
    ttl_end_ = ttl_end_of(after, clock_, now());
}

void Lifetime::hold() {
  if (!held_since_) held_since_ = clock_.steady_now();
  if (!paused_from_) paused_from_ = held_since_;
}

void Lifetime::go_on(const store::SandboxRow& row) {
  touch();
  paused_from_.reset();
  if (!held_since_) return;
  SteadyTime since = *std::exchange(held_since_, std::nullopt);
  if (!ttl_end_) return;
  bool was_over = *ttl_end_ <= since;
  ttl_end_ = was_over ? now() + milliseconds(row.ttl_ms) : *ttl_end_ + (now() - since);
}

std::optional<SteadyTime> Lifetime::first_end(SteadyTime idle_since) const {
  if (idle_ttl_.count() == 0) return ttl_end_;
  SteadyTime idle_end = idle_since + idle_ttl_;
  return ttl_end_ ? std::min(*ttl_end_, idle_end) : idle_end;
}

std::optional<SteadyTime> Lifetime::deadline() const {
  if (held_since_) return std::nullopt;
  if (is_busy()) return ttl_end_;
  return first_end(
      std::max({touched_, execs_.last_end(), channels_.last_end(), contexts_.last_end()}));
}

std::optional<SteadyTime> Lifetime::earliest_deadline() const {
  if (held_since_ || !is_busy()) return deadline();
  return first_end(now());
}

std::optional<SteadyTime> Lifetime::memory_end() const {
  if (!paused_from_ || files_only_after_.count() == 0) return std::nullopt;
  return *paused_from_ + files_only_after_;
}

std::optional<WallTime> Lifetime::ends_at() const {
  std::optional<SteadyTime> end = deadline();
  if (!end) return std::nullopt;
  auto left = *end - clock_.steady_now();
  return clock_.wall_now() + std::chrono::duration_cast<WallTime::duration>(left);
}

}  // namespace atl::sandbox
