// A pool: one btrfs in a file, mounted from the one loop device that shows it. The file has all its
// blocks from the start, because a btrfs that finds no room on the disk beneath it goes read-only,
// for everybody and for good.
//
// Whoever has files of it open keeps the file system alive, also when all mounts are gone that we
// know of. The next mount must be of the same device: a second one on the same file would be a
// second, conflicting file system.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "linux/subvolume.h"

namespace atl::linux {

inline constexpr uint64_t kMinPoolBytes = 256ull << 20;
inline constexpr uint64_t kMaxDefaultPoolBytes = 64ull << 30;

struct PoolPlace {
  std::string directory;  // of root, with the file pool.btrfs
  std::string mount;      // point

  std::string file() const { return directory + "/pool.btrfs"; }
};

struct MountedPool {
  Fd root;
  dev_t device = 0;  // the loop device
  BtrfsQuotas quotas = BtrfsQuotas::kNone;
};

bool pool_exists(const PoolPlace& place);

// Makes the file if there is none; `bytes` 0 takes half of the free space, at most 64 GiB, but
// leaves what others must find free.
Result<void> mount_pool(const PoolPlace& place, uint64_t bytes);
// What is mounted. A pool that cannot limit subvolumes is opened all the same.
Result<MountedPool> open_pool(const PoolPlace& place);

// Unmounts and waits until its loop device is free.
Result<void> unmount_pool(const PoolPlace& place);

// ENODEV: it is not mounted. EROFS: it is read-only, which it is after an error.
Result<void> check_pool(const PoolPlace& place);

}  // namespace atl::linux
