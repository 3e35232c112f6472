// Removal: ends an isolate and frees all it held, in an order that leaves its record to the end.
// Each step accepts that its thing is not there, so a removal can be repeated after a crash at any
// point, and a launch that was killed at any point can be removed.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "warden/host.h"
#include "warden/inventory.h"

namespace atl::warden {

// Takes the lock by itself; no record means nothing is left, which is a success.
Result<void> remove_isolate(const Host& host, const SandboxId& id);
Result<void> remove_isolate(const Host& host, const SandboxId& id, RecordLock record);

// Ends what runs in all of them, and leaves the rest.
Result<void> end_all_isolates(const Host& host);

// What a crash or a reboot left without a record: groups, layers, sockets, uid ranges.
Result<void> remove_strays(const Host& host);

// Everything of this Atoll, also its parent groups and mounts. No warden may be serving. What runs
// ends first, because a pool that is broken can be mounted only when nobody holds it any more;
// where it cannot all the same, its layers are left for the next start.
Result<void> remove_all(Host& host);

}  // namespace atl::warden
