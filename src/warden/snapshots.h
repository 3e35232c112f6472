// Snapshots: read-only subvolumes of the layer pool under ids of their own. They outlive their
// isolate, the warden and the machine, until the client removes them.
#pragma once

#include <vector>

#include "base/result.h"
#include "base/snapshot_id.h"
#include "warden/host.h"
#include "warden/protocol.h"

namespace atl::warden {

SnapshotId snapshot_of(const Request& request);

struct Cut {
  uint64_t held_bytes;
  uint64_t frozen_us;
};
// Of the isolate's layer, which stands still meanwhile, or of one that was kept; on disk when this
// returns. EEXIST: the id is taken.
Result<Cut> cut_snapshot(const Host& host, const Request& request);

Result<void> remove_snapshot(const Host& host, const SnapshotId& id);

}  // namespace atl::warden
