#include "sandbox/lifetime.h"

#include <algorithm>

namespace atl::sandbox {

using std::chrono::milliseconds;

namespace {

std::optional<SteadyTime> ttl_end_of(const store::SandboxRow& row, const Clock& clock) {
  if (row.ttl_ms == 0) return std::nullopt;
  // Wall time only decides how much was left when atolld (re)started; from there on the timer is
  // steady.
  int64_t age_ms = to_milliseconds(clock.wall_now()) - row.ttl_from_ms;
  auto left_ms = static_cast<int64_t>(row.ttl_ms) - std::max<int64_t>(age_ms, 0);
  return clock.steady_now() + milliseconds(std::max<int64_t>(left_ms, 0));
}

}  // namespace

Lifetime::Lifetime(const store::SandboxRow& row, const Clock& clock, const ExecTable& execs,
                   const Channels& channels, const Contexts& contexts)
    : clock_(clock),
      execs_(execs),
      channels_(channels),
      contexts_(contexts),
      idle_ttl_(row.idle_ttl_ms),
      ttl_end_(ttl_end_of(row, clock)),
      touched_(clock.steady_now()) {}

void Lifetime::change(const store::SandboxRow& before, const store::SandboxRow& after) {
  idle_ttl_ = milliseconds(after.idle_ttl_ms);
  if (after.ttl_ms != before.ttl_ms || after.ttl_from_ms != before.ttl_from_ms)
    ttl_end_ = ttl_end_of(after, clock_);
}

std::optional<SteadyTime> Lifetime::first_end(SteadyTime idle_since) const {
  if (idle_ttl_.count() == 0) return ttl_end_;
  SteadyTime idle_end = idle_since + idle_ttl_;
  return ttl_end_ ? std::min(*ttl_end_, idle_end) : idle_end;
}

std::optional<SteadyTime> Lifetime::deadline() const {
  if (is_busy()) return ttl_end_;
  return first_end(
      std::max({touched_, execs_.last_end(), channels_.last_end(), contexts_.last_end()}));
}

std::optional<SteadyTime> Lifetime::earliest_deadline() const {
  if (!is_busy()) return deadline();
  return first_end(clock_.steady_now());
}

std::optional<WallTime> Lifetime::ends_at() const {
  std::optional<SteadyTime> end = deadline();
  if (!end) return std::nullopt;
  auto left = *end - clock_.steady_now();
  return clock_.wall_now() + std::chrono::duration_cast<WallTime::duration>(left);
}

}  // namespace atl::sandbox
