// What happens once, before the first request: the warden's own walls, and the things it mounts.
#pragma once

#include "base/result.h"
#include "linux/lock_file.h"
#include "warden/host.h"
#include "warden/options.h"

namespace atl::warden {

// Leaves the host's mount and network namespaces, becomes the subreaper of its isolates.
Result<void> enter_own_namespaces();

// Held for life; another holder means another warden, which is an error. The supervisor asks who
// holds it.
Result<linux::LockFile> take_lock(const Host& host);

// Mounts pool and devices, makes the parent groups, loads the agent, removes what crashes left.
Result<void> prepare(Host& host, const Options& options);

// Gives up, for good, the capabilities that requests do not need.
Result<void> drop_capabilities();

}  // namespace atl::warden
