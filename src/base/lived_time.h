// LivedTime: time as this process lives it, for judging others by their silence. Of what passes
// between two looks only so much counts, so that nobody is blamed for a time in which this process,
// or its whole machine, stood still.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/clock.h"

namespace atl {

class LivedTime {
 public:
  explicit LivedTime(std::chrono::milliseconds most_between_looks) : most_(most_between_looks) {}

  // How much counts of the time since the last look.
  std::chrono::milliseconds look(SteadyTime now) {
    auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(now - last_.value_or(now));
    last_ = now;
    return std::clamp(passed, std::chrono::milliseconds(0), most_);
  }

 private:
  std::chrono::milliseconds most_;
  std::optional<SteadyTime> last_;
};

}  // namespace atl
