// /proc/sys/kernel/random/boot_id of a sandbox behind gVisor: the sentry draws its own once, and
// whoever begins with its memory would have the same. So a file covers it, which is written anew.
#pragma once

#include "base/result.h"

namespace atl::gvisor {

inline constexpr const char* kBootIdName = "boot_id";

// In this directory; another one each time, in the same file.
Result<void> draw_boot_id(int directory);

}  // namespace atl::gvisor
