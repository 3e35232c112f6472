#include "linux/group_counters.h"

#include <fcntl.h>

#include "base/file.h"
#include "linux/cgroup_namespace.h"
#include "linux/cgroup_tree.h"
#include "linux/group_limits.h"

namespace atl::linux {

Result<void> open_memory_counters(int group, CounterFds& fds) {
  ATOLL_TRY(fds.memory_events, open_at(group, "memory.events", O_RDONLY));
  ATOLL_TRY(fds.oom_notice, open_at(group, "memory.events", O_RDONLY));
  auto peak = open_at(group, "memory.peak", O_RDONLY);
  if (peak) fds.memory_peak = std::move(*peak);
  return {};
}

Result<void> open_memory_counters(const std::string& v1_group, CounterFds& fds) {
  ATOLL_TRY(fds.memory_events, open_file(v1_group + "/memory.oom_control", O_RDONLY));
  ATOLL_TRY(fds.memory_peak, open_file(v1_group + "/memory.max_usage_in_bytes", O_RDONLY));
  ATOLL_TRY(fds.oom_notice, register_v1_notice(v1_group, fds.memory_events.get()));
  return {};
}

}  // namespace atl::linux
