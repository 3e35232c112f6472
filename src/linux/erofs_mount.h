// An erofs image in a file, mounted read-only.
#pragma once

#include <string>

#include "base/result.h"

namespace atl::linux {

// From the file itself where the kernel can (6.12), else from a loop device that all who mount it
// share.
Result<void> mount_erofs(int file, const std::string& target);

}  // namespace atl::linux
