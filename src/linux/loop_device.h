// Loop devices: a file as a block device, see loop(4). Detached by the kernel itself when the last
// user (mount or descriptor) is gone, so that no crash can leak one.
#pragma once

#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace atl::linux {

struct LoopDevice {
  std::string path;
  Fd fd;  // keeps the device attached until something is mounted from it
};

enum class LoopAccess : unsigned char { kReadWrite, kReadOnly };

// The device that already shows this file. Two devices on one file would corrupt a file system.
Result<std::optional<LoopDevice>> find_loop_device(int file);

Result<LoopDevice> attach_loop_device(int file, LoopAccess access);

// The one that shows this file, else a new one. Not safe against another caller for the same file.
Result<LoopDevice> share_loop_device(int file, LoopAccess access);

}  // namespace atl::linux
