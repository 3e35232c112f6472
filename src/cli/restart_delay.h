// How long to wait before a process that died is started again: doubles from one death to the next,
// so that a broken one costs little, and starts over after a life long enough to call it healthy.
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

namespace atl::cli {

class RestartDelay {
 public:
  static constexpr std::chrono::milliseconds kFirst{10};
  static constexpr std::chrono::milliseconds kLongest{500};
  static constexpr std::chrono::milliseconds kHealthy{10'000};

  std::chrono::milliseconds after(std::chrono::milliseconds lived) {
    if (lived >= kHealthy) next_ = kFirst;
    return std::exchange(next_, std::min(next_ * 2, kLongest));
  }

 private:
  std::chrono::milliseconds next_ = kFirst;
};

}  // namespace atl::cli
