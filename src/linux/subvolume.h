// Subvolumes of btrfs, their quotas, their removal: see btrfs-ioctl(2). Not called btrfs.h, because
// this folder would then hide the kernel header <linux/btrfs.h>.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace atl::linux {

enum class BtrfsQuotas : unsigned char { kNone, kClassic, kSimple };

// Simple quotas where the kernel has them (6.7), else classic ones; tells which are on now. Already
// enabled is a success, of whichever kind.
Result<BtrfsQuotas> enable_btrfs_quotas(int file_system);

// A subvolume `name` in the open directory, empty, owned by the caller, that may hold
// `limit_bytes`.
Result<void> create_subvolume(int directory, const std::string& name, uint64_t limit_bytes);

Result<void> set_subvolume_limit(int subvolume, uint64_t limit_bytes);

enum class SubvolumeAccess : unsigned char { kReadOnly, kWritable };
// The open subvolume as it is now, under `name` in the open directory; on disk when this returns.
// Without a limit of its own.
Result<void> snapshot_subvolume(int source, int directory, const std::string& name,
                                SubvolumeAccess access);

// Bytes that are charged to an open subvolume, as of the last commit: with simple quotas what was
// written to it and not what it shares with the one that it is a snapshot of.
Result<uint64_t> read_subvolume_usage(int subvolume);

// The limit that is in force for an open subvolume, as the file system itself has recorded it.
Result<uint64_t> read_subvolume_limit(int subvolume);

// Also one that is in use, or was renamed before; on disk when this returns. ENOENT: neither is
// there.
Result<void> rename_subvolume(int directory, const std::string& from, const std::string& to);

// Gone at once for whoever looks; its blocks are freed in the background. Absence is a success.
Result<void> remove_subvolume(int directory, const std::string& name);

}  // namespace atl::linux
