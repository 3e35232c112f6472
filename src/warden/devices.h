// The devices of every isolate: one small read-only tmpfs with the six harmless nodes, made once. A
// launch clones the mount instead of building its own /dev from six bind mounts. Nothing in it can
// be changed, so sharing it carries nothing from one isolate to another.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "warden/host.h"

namespace atl::warden {

// Mounts it at R/devices in the warden's own mount namespace and fills host.devices.
Result<void> mount_devices(Host& host);

}  // namespace atl::warden
