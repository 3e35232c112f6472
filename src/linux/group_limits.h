// The limits of one control group, written and read back: the kernel takes some values and keeps
// others, and a limit that is not what was asked for is a failure. See cgroups(7).
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/result.h"
#include "linux/cgroup_tree.h"

namespace atl::linux {

enum class GroupVersion : unsigned char { kV1, kV2 };

// As the kernel keeps memory limits: rounded down.
uint64_t whole_pages(uint64_t bytes);

// Bytes of memory, thousandths of a processor or a number of processes. Less memory than is in use
// and cannot be freed is refused with EBUSY; nothing is killed for it. In version 1, sockets of TCP
// and UDP may hold an eighth of it besides, and at least 8 MiB.
Result<void> set_group_limit(int group, GroupVersion version, Controller controller,
                             uint64_t value);
Result<uint64_t> read_group_limit(int group, GroupVersion version, Controller controller);

// Of one device in a version 2 group, bytes read and written each; 0: not limited.
Result<void> set_disk_rate(int group, dev_t device, uint64_t bytes_per_second);
Result<uint64_t> read_disk_rate(int group, dev_t device);

}  // namespace atl::linux
