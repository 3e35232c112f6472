// What the processes of a control group use at this moment, as the kernel counts it. See
// cgroups(7).
#pragma once

#include <cstdint>

#include "base/result.h"
#include "linux/group_limits.h"

namespace atl::linux {

struct ResourceUsage {
  uint64_t cpu_us = 0;        // since the group was made
  uint64_t memory_bytes = 0;  // what is charged to it, the cache included
  uint64_t cache_bytes = 0;   // of files, which the kernel takes back when it needs to
  uint64_t disk_bytes = 0;    // of its layer, as of the file system's last commit
  uint64_t memory_kills = 0;  // processes ended at the memory limit, also those that are gone
  // 1: all of it was ended, because it made kernel memory grow that it is not charged for.
  uint64_t ended_for_kernel_memory = 0;
};

// Of a version 2 group, whether or not it has the controller: the kernel counts anyway.
Result<uint64_t> read_cpu_us(int group);

struct MemoryUsage {
  uint64_t used_bytes, cache_bytes;
};
Result<MemoryUsage> read_memory_usage(int group, GroupVersion version);
// Counts also after the last process of the group has ended.
Result<uint64_t> read_memory_kills(int group, GroupVersion version);

}  // namespace atl::linux
