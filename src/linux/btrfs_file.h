// A btrfs in a file: made by mkfs.btrfs(8), mounted from its loop device, and let go.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace atl::linux {

// A file of so many bytes of disk with an empty file system. Under another name until it is whole:
// a crash in the middle leaves no half of one.
Result<void> create_btrfs_file(const std::string& path, uint64_t bytes);

// Gives an open file blocks for all its length, if that leaves so many bytes of the disk free; else
// it stays as it is, and the error is ENOSPC. EOPNOTSUPP: its file system cannot.
Result<void> allocate_whole_file(int file, uint64_t left_bytes);

// In bytes, of the file system that `directory` is on.
Result<uint64_t> half_of_free_space(const std::string& directory);

// Waits a moment for whoever is just letting go of the same device.
Result<void> mount_btrfs(const std::string& device, const std::string& target, const char* options);

// Until no loop device shows the open file any more.
Result<void> await_detached(int file);

}  // namespace atl::linux
