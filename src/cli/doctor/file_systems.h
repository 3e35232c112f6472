// The file systems and mounts that a sandbox's root is made of: an image (erofs), a layer with a
// byte limit (btrfs on a loop device), both shown through an id map, an overlay on top, a private
// /proc.
#pragma once

#include <string_view>

#include "cli/doctor/finding.h"
#include "cli/doctor/kernel.h"

namespace atl::cli {

// `text` is that of /proc/filesystems.
bool lists_file_system(std::string_view text, std::string_view name);
// `text` is that of modules.dep or modules.builtin.
bool lists_module(std::string_view text, std::string_view name);

// What comes with a version and cannot be tried without a file system at hand.
Findings judge_by_version(KernelVersion version);

Findings probe_file_systems();

}  // namespace atl::cli
