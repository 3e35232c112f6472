// The layer pool (linux/btrfs_pool.h) in S/pool.btrfs, mounted at R/pool in the warden's own mount
// namespace. A layer is a subvolume named after the isolate, with a quota, holding upper/ and
// work/ of its overlay; owners on disk are 0-65535, an idmapped mount shows them as the isolate's.
// One that is kept begins with `p` instead of `s`, so that nobody takes it for what a dead isolate
// left. Isolates keep the file system alive when the warden dies.
#pragma once

#include <cstdint>

#include "base/ids.h"
#include "base/result.h"
#include "warden/host.h"
#include "warden/protocol.h"

namespace atl::warden {

// Fills host.pool and what is known of it. Where layers cannot be limited launches are refused.
Result<void> mount_pool(Host& host);
// The second half of that: opens what is mounted.
Result<void> open_pool(Host& host);
// And waits until its loop device is free.
Result<void> unmount_pool(Host& host);

// EROFS: it is read-only, which it is after an error.
Result<void> check_pool(const Host& host);
// As the request says: empty, or with what a snapshot holds; ENOENT if that is not there. One that
// was kept is taken as it is.
Result<void> create_layer(const Host& host, const SandboxId& id, const Request& request);
Result<Fd> open_layer(const Host& host, const SandboxId& id);
// One that is not kept; and one that is. Without a pool that can be written, the first goes when
// there is one again, as what has no record does; the second is an error.
Result<void> remove_layer(const Host& host, const SandboxId& id);
Result<void> remove_kept_layer(const Host& host, const SandboxId& id);
// From now on it is kept, whatever it was; on disk when this returns. ENOENT: there is none.
Result<void> keep_layer(const Host& host, const SandboxId& id);
// The name of the one that there is.
std::string layer_name(const Host& host, const SandboxId& id);

}  // namespace atl::warden
