#include "sandbox/tally.h"

#include <algorithm>

namespace atl::sandbox {

void Histogram::add(std::chrono::microseconds time) {
  double seconds = std::chrono::duration<double>(time).count();
  auto bucket = std::lower_bound(kBoundSeconds.begin(), kBoundSeconds.end(), seconds);
  ++counts_[static_cast<size_t>(bucket - kBoundSeconds.begin())];
  sum_seconds_ += seconds;
}

uint64_t Histogram::up_to(size_t bound) const {
  uint64_t all = 0;
  for (size_t i = 0; i < counts_.size() && i <= bound; ++i) all += counts_[i];
  return all;
}

}  // namespace atl::sandbox
