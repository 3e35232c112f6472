#include "sandbox/demand.h"

#include <algorithm>

namespace atl::sandbox {
namespace {

constexpr std::chrono::seconds kAtOnce{2};
constexpr std::chrono::minutes kHalfLife{2};

}  // namespace

size_t Demand::lately(SteadyTime now) {
  while (!taken_.empty() && taken_.front() + kAtOnce < now) taken_.pop_front();
  if (taken_.size() >= peak_ || peak_at_ + kHalfLife <= now) {
    peak_ = std::max(taken_.size(), peak_ / 2);
    peak_at_ = now;
  }
  return peak_;
}

}  // namespace atl::sandbox
// 1795138839
