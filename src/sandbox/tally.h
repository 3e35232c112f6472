// Tally: what has happened since this process started, counted for whoever watches it. One thread.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace atl::sandbox {

// How often something took how long.
class Histogram {
 public:
  // The upper end of each bucket but the last, which has none.
  static constexpr std::array<double, 14> kBoundSeconds = {
      0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30};

  void add(std::chrono::microseconds time);
  // How many took no longer than the bound of that number; beyond the last bound, all.
  uint64_t up_to(size_t bound) const;
  double sum_seconds() const { return sum_seconds_; }

 private:
  std::array<uint64_t, kBoundSeconds.size() + 1> counts_ = {};
  double sum_seconds_ = 0;
};

struct Tally {
  Histogram create_time;  // of creates that made a sandbox
  uint64_t failed_creates = 0;
  std::map<std::string, uint64_t, std::less<>> execs;  // that have ended, by verdict
  Histogram exec_start_time;                           // of those of which the agent told
};

}  // namespace atl::sandbox
