// UnsteppedTime: the wall time at which a process began, moved on by the steady clock. Rows that
// expire carry such a time over restarts. A wall clock that is set meanwhile (by hand, by the first
// answer of NTP) ends nothing early and keeps nothing for longer, until the next start reads it.
#pragma once

#include "base/clock.h"

namespace atl {

class UnsteppedTime {
 public:
  // The clock must outlive it.
  explicit UnsteppedTime(const Clock& clock) noexcept
      : clock_(clock), began_(clock.wall_now()), began_steady_(clock.steady_now()) {}

  int64_t now_ms() const { return to_milliseconds(began_ + (clock_.steady_now() - began_steady_)); }

 private:
  const Clock& clock_;
  WallTime began_;
  SteadyTime began_steady_;
};

}  // namespace atl
