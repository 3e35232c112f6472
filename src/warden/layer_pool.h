// The layer pool: one btrfs in the sparse file S/pool.btrfs, mounted at R/pool in the warden's own
// mount namespace. A layer is a subvolume named after the isolate, with a quota, holding upper/ and
// work/ of its overlay; owners on disk are 0-65535, an idmapped mount shows them as the isolate's.
// One that is kept begins with `p` instead of `s`, so that nobody takes it for what a dead isolate
// left.
//
// Isolates keep the file system alive when the warden dies. The next warden must find their loop
// device and mount that one again: a second device on the same file would be a second, conflicting
// file system.
#pragma once

#include <cstdint>

#include "base/ids.h"
#include "base/result.h"
#include "warden/host.h"
#include "warden/protocol.h"

namespace atl::warden {

inline constexpr uint64_t kMinPoolBytes = 256ull << 20;
inline constexpr uint64_t kMaxDefaultPoolBytes = 64ull << 30;

// Makes the file if there is none; `bytes` 0 takes half of the free space, at most 64 GiB. Fills
// host.pool and what is known of it. A pool that cannot limit layers is mounted all the same:
// launches are then refused.
Result<void> mount_pool(Host& host, uint64_t bytes);

bool pool_exists(const Host& host);

// Unmounts and waits until its loop device is free.
Result<void> unmount_pool(Host& host);

Result<void> check_pool(const Host& host);
// As the request says: empty, or with what a snapshot holds; ENOENT if that is not there. One that
// was kept is taken as it is.
Result<void> create_layer(const Host& host, const SandboxId& id, const Request& request);
Result<Fd> open_layer(const Host& host, const SandboxId& id);
// One that is not kept; and one that is.
Result<void> remove_layer(const Host& host, const SandboxId& id);
Result<void> remove_kept_layer(const Host& host, const SandboxId& id);
// From now on it is kept, whatever it was; on disk when this returns. ENOENT: there is none.
Result<void> keep_layer(const Host& host, const SandboxId& id);
// The name of the one that there is.
std::string layer_name(const Host& host, const SandboxId& id);

}  // namespace atl::warden
