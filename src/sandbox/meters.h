// What sandboxes use, measured when somebody asks: each question adds a point to the few that are
// kept of that sandbox, in memory, unless the newest is fresh. Nobody is measured unasked, so 2,000
// idle sandboxes cost nothing.
//
// One thread.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "isolate/meter.h"
#include "sandbox/sandboxes.h"

namespace atl::sandbox {

struct MeterPoint {
  WallTime at;
  uint64_t cpu_us = 0;        // since the sandbox was made
  double cpu_percent = 0;     // of what it may use, since the point before or since it was made
  uint64_t memory_bytes = 0;  // without what the kernel can take back, the cache
  uint64_t cache_bytes = 0;
  uint64_t disk_bytes = 0;
};

class Meters {
 public:
  static constexpr size_t kMaxPoints = 120;
  static constexpr std::chrono::seconds kFresh{1};

  Meters(Sandboxes& sandboxes, isolate::Meter& meter) : sandboxes_(sandboxes), meter_(meter) {}

  // Measures, then all that is kept, oldest first.
  Task<Result<std::vector<MeterPoint>>> read(std::shared_ptr<Sandbox> sandbox);

 private:
  using Points = std::deque<MeterPoint>;
  void add(const Sandbox& sandbox, MeterPoint point);
  void forget_gone();

  Sandboxes& sandboxes_;
  isolate::Meter& meter_;
  std::map<SandboxId, Points> points_;
};

}  // namespace atl::sandbox
