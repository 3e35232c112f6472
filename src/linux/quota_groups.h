// Quota groups of btrfs that outlive their subvolume. With classic quotas the kernel keeps one for
// every subvolume that ever was, on disk and in memory (with simple ones only before 6.12), and
// refuses to remove it until the last block is free, which is some time after the removal. So they
// are collected now and then.
#pragma once

#include "base/result.h"

namespace atl::linux {

// Removes the groups whose subvolume is gone and freed. No quotas is a success.
Result<void> remove_stale_quota_groups(int file_system);

}  // namespace atl::linux
