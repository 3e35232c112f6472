// A small tmpfs that is filled once and from then on read-only, also for those who get a clone of
// its mount.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace atl::linux {

// Makes the directory `target` and mounts it there; `flags` are MS_*. The mount's root.
Result<Fd> mount_tmpfs(const std::string& target, unsigned long flags, const char* options);

// No file in it may be open for writing. With the same flags.
Result<void> make_tmpfs_read_only(const std::string& target, unsigned long flags);

}  // namespace atl::linux
