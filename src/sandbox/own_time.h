// OwnTime: the steady time of one sandbox, which stands still while it is paused. One thread.
#pragma once

#include <optional>
#include <utility>

#include "base/clock.h"

namespace atl::sandbox {

class OwnTime {
 public:
  SteadyTime now() const {
    return held_since_.value_or(std::chrono::steady_clock::now()) - stood_still_;
  }
  bool is_held() const { return held_since_.has_value(); }
  void hold() {
    if (!held_since_) held_since_ = std::chrono::steady_clock::now();
  }
  void go_on() {
    if (!held_since_) return;
    SteadyTime since = *std::exchange(held_since_, std::nullopt);
    stood_still_ += std::chrono::steady_clock::now() - since;
  }

 private:
  std::optional<SteadyTime> held_since_;
  SteadyTime::duration stood_still_{0};
};

}  // namespace atl::sandbox
