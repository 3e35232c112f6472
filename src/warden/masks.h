// What of /proc and /sys a sandbox does not get to see or change. /proc shows the whole machine in
// its top-level files, and root inside owns some of them.
//
// A masked file or directory is covered by an empty one of a small read-only tmpfs, made once and
// cloned per isolate: reading it gives nothing, and unlike with the null device a write fails.
// Beside them is `links`, the lowest layer of every root: what no image need bring.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "warden/host.h"

namespace atl::warden {

// Mounts it at R/masks in the warden's own mount namespace and fills host.masks.
Result<void> mount_masks(Host& host);

// Covers and write-protects in the attached mount `proc`, and nowhere else: every target is opened
// beneath it without crossing links or mounts. `masks` is an attached clone of R/masks.
Result<void> mask_proc(int proc, int masks);

// A detached mount of an empty directory that nobody can write to.
Result<Fd> clone_empty_directory(int masks);

}  // namespace atl::warden
