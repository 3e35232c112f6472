#include "sandbox/meters.h"

#include <algorithm>

namespace atl::sandbox {

namespace {

// Of the processors that the sandbox may use, as far as they are its own: never above 100.
double percent(uint64_t spent_us, std::chrono::microseconds passed, uint32_t cpu_millis) {
  double may_us = static_cast<double>(passed.count()) * cpu_millis / 1000;
  if (may_us <= 0) return 0;
  return std::min(100.0, 100 * static_cast<double>(spent_us) / may_us);
}

}  // namespace

Task<Result<std::vector<MeterPoint>>> Meters::read(std::shared_ptr<Sandbox> sandbox) {
  SandboxId id = sandbox->id();
  WallTime now = sandboxes_.services().clock.wall_now();
  auto kept = points_.find(id);
  bool is_kept = kept != points_.end() && !kept->second.empty();
  bool is_fresh = is_kept && now - kept->second.back().at < kFresh;
  if (!is_fresh && !sandbox->row().released) {
    ATOLL_CO_TRY(auto usage, co_await meter_.usage(id));
    MeterPoint point{.at = now, .cpu_us = usage.cpu_us};
    point.cache_bytes = std::min(usage.cache_bytes, usage.memory_bytes);
    point.memory_bytes = usage.memory_bytes - point.cache_bytes;
    point.disk_bytes = usage.disk_bytes;
    add(*sandbox, point);
  }
  kept = points_.find(id);
  if (kept == points_.end()) co_return std::vector<MeterPoint>();
  co_return std::vector<MeterPoint>(kept->second.begin(), kept->second.end());
}

void Meters::add(const Sandbox& sandbox, MeterPoint point) {
  using std::chrono::microseconds;
  forget_gone();
  Points& points = points_[sandbox.id()];
  WallTime since{std::chrono::milliseconds(sandbox.row().created_at_ms)};
  uint64_t spent_us = point.cpu_us;
  if (!points.empty()) {
    since = points.back().at;
    // Another question may have been answered meanwhile.
    spent_us -= std::min(spent_us, points.back().cpu_us);
  }
  auto passed = std::chrono::duration_cast<microseconds>(point.at - since);
  point.cpu_percent = percent(spent_us, passed, sandbox.row().cpu_millis);
  points.push_back(point);
  if (points.size() > kMaxPoints) points.pop_front();
}

// Now and then, so that it costs each question little.
void Meters::forget_gone() {
  constexpr size_t kFew = 64;
  const auto& all = sandboxes_.all();
  if (points_.size() < kFew || points_.size() < 2 * all.size()) return;
  std::erase_if(points_, [&](const auto& entry) { return !all.contains(entry.first); });
}

}  // namespace atl::sandbox
