// /proc/sys/kernel/random/boot_id of a sandbox: a file that covers it. In a jail the kernel's would
// tell two sandboxes that they are on one host. Behind gVisor the sentry draws its own once, and
// whoever begins with its memory would have the same; there it is written anew.
#pragma once

#include "base/result.h"

namespace atl::linux {

inline constexpr const char* kBootIdName = "boot_id";

// In this directory; another one each time, in the same file.
Result<void> draw_boot_id(int directory);

}  // namespace atl::linux
