// Time, behind a seam because tests of `sandbox/` must not sleep. Deadlines use steady time only;
// wall time is for showing to people.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace atl {

using SteadyTime = std::chrono::steady_clock::time_point;
using WallTime = std::chrono::system_clock::time_point;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual SteadyTime steady_now() const = 0;
  virtual WallTime wall_now() const = 0;
};

class SystemClock final : public Clock {
 public:
  SteadyTime steady_now() const override { return std::chrono::steady_clock::now(); }
  WallTime wall_now() const override { return std::chrono::system_clock::now(); }
};

// A clock that moves only when told.
class FakeClock final : public Clock {
 public:
  SteadyTime steady_now() const override { return steady_; }
  WallTime wall_now() const override { return wall_; }
  void advance(std::chrono::milliseconds by) {
    steady_ += by;
    wall_ += by;
  }

 private:
  SteadyTime steady_{std::chrono::hours(1)};
  WallTime wall_{std::chrono::seconds(1'800'000'000)};
};

// Milliseconds since 1970, as rows store it.
inline int64_t to_milliseconds(WallTime time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

// 2026-11-15T21:28:00.123Z
std::string to_rfc3339(WallTime time);

}  // namespace atl
