// What of /proc and /sys a sandbox gets to see. /proc shows the whole machine in its top-level
// files, and root inside owns some of them; so there is a list of those that are shown, and what a
// new kernel adds is not. What a module adds while a sandbox lives is seen by that sandbox.
//
// What is not shown is covered by an empty file or directory of a small read-only tmpfs, made once
// and cloned per isolate: reading it gives nothing, and unlike with the null device a write fails.
// /proc/sys is covered by a list of settings there, copied when it was made, for not even their
// names should tell one host from another; those that belong to namespaces are the kernel's own.
// Beside them is `links`, the lowest layer of every root: what no image need bring.
#pragma once

#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace atl::linux {

// Where `links` has the text that covers an image's own.
inline constexpr const char* kResolverFile = "links/etc/resolv.conf";

// Mounts it at `target`; its directory. `resolver` is the text of resolv.conf(5).
Result<Fd> mount_masks(const std::string& target, std::string_view resolver);

// Covers and write-protects in the attached mount `proc`, a new procfs. `masks` is the absolute
// path of an attached clone of that mount; `boot_id` that of a file to be shown as the kernel's, or
// empty where the kernel is the sandbox's own. Leaves the working directory in `proc`.
Result<void> mask_proc(int proc, const std::string& masks, const std::string& boot_id);

// A detached mount of an empty directory that nobody can write to.
Result<Fd> clone_empty_directory(int masks);

}  // namespace atl::linux
