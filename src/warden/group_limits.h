// The limits of one isolate, written to the groups that carry them and read back: the kernel takes
// some values and keeps others, and a limit that is not what was asked for is a failure.
#pragma once

#include "base/result.h"
#include "linux/cgroup_tree.h"
#include "warden/host.h"
#include "warden/protocol.h"

namespace atl::warden {

Result<void> set_v1_limit(int group, linux::Controller controller, const Request& limits);
Result<void> set_v2_limit(int group, linux::Controller controller, const Request& limits);

// Of the device that all layers are on. Only where find_refusal() has not refused it.
Result<void> set_disk_rate(int group, const Host& host, uint64_t bytes_per_second);

}  // namespace atl::warden
