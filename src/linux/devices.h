// The devices of every isolate: one small read-only tmpfs with the six harmless nodes, made once. A
// launch clones the mount instead of building its own /dev from six bind mounts. Nothing in it can
// be changed, so sharing it carries nothing from one isolate to another.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace atl::linux {

// Mounts it at `target`; its directory.
Result<Fd> mount_devices(const std::string& target);

}  // namespace atl::linux
