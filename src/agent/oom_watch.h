// Tells when the kernel has killed a process of the sandbox for its memory, where that shall end
// all that runs (OnOom::kEndSandbox).
//
// The notice alone is not proof. Version 1 gives it before the kill, which may then turn out not to
// be needed; version 2 gives it for every memory event. So a notice only starts a watch of the
// counter.
#pragma once

#include <cstdint>
#include <optional>

#include "agent/birth_record.h"
#include "agent/poll_set.h"
#include "base/clock.h"
#include "base/fd.h"

namespace atl::agent {

class OomWatch {
 public:
  OomWatch(Fd notice, OnOom on_oom);

  void add_watches(PollSet& polls) const;
  void noticed(SteadyTime now);
  // When to check without an event.
  std::optional<SteadyTime> check_at() const { return check_at_; }
  // True if the kernel has killed since it was last true.
  bool check(uint64_t memory_kills, SteadyTime now);

 private:
  Fd notice_;  // not valid: nothing to watch
  short poll_events_;
  uint64_t seen_kills_ = 0;
  SteadyTime watch_until_;
  std::chrono::milliseconds pause_{0};
  std::optional<SteadyTime> check_at_;
};

}  // namespace atl::agent
