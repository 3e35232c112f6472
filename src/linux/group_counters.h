// What control groups count of the limits that are touched in them.
#pragma once

#include <array>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace atl::linux {

// Open files of the groups that carry the limits; see agent/protocol.h.
struct CounterFds {
  Fd memory_events;
  Fd pids_events;
  Fd memory_peak;  // v2 before 5.19 has none
  Fd oom_notice;
  std::array<int, 4> numbers() const {
    return {memory_events.get(), pids_events.get(), memory_peak.get(), oom_notice.get()};
  }
};

// Of an open group of version 2, or of the path of one of version 1.
Result<void> open_memory_counters(int group, CounterFds& fds);
Result<void> open_memory_counters(const std::string& v1_group, CounterFds& fds);

}  // namespace atl::linux
