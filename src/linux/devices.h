// The devices of every isolate: one small read-only tmpfs with the six harmless nodes, made once. A
// launch clones the mount instead of building its own /dev from six bind mounts. Nothing in it can
// be changed, so sharing it carries nothing from one isolate to another. Another one, which has
// /dev/kvm too, is for the jails of machines that the host's processor runs, and for no others.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace atl::linux {

enum class Devices : unsigned char { kOfAll, kWithKvm };

// Mounts it at `target`; its directory. Nothing is mounted, and given, with kvm where this host has
// no such device.
Result<Fd> mount_devices(const std::string& target, Devices which = Devices::kOfAll);

}  // namespace atl::linux
