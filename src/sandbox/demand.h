// Demand: how many were taken at once lately. A peak is remembered and halves every few minutes, so
// that the next crowd finds as many ready as the last one wanted. One thread.
#pragma once

#include <cstddef>
#include <deque>

#include "base/clock.h"

namespace atl::sandbox {

class Demand {
 public:
  void count(SteadyTime now) { taken_.push_back(now); }
  size_t lately(SteadyTime now);

 private:
  std::deque<SteadyTime> taken_;  // within the last seconds
  size_t peak_ = 0;
  SteadyTime peak_at_{};
};

}  // namespace atl::sandbox
