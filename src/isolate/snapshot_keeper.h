// The part of a driver that keeps files of its isolates beyond their end.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "async/task.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/snapshot_id.h"

namespace atl::isolate {

// What was kept of an isolate's files.
struct Cut {
  uint64_t held_bytes;  // at most
  std::chrono::microseconds frozen;
};

class SnapshotKeeper {
 public:
  virtual ~SnapshotKeeper() = default;

  // Keeps the files of the isolate, or those that were kept of it, under an id that is not taken,
  // until remove_snapshot(); nothing runs in it meanwhile. On disk when this returns.
  // `inherited_bytes` are those that it was launched with.
  virtual Task<Result<Cut>> cut(SandboxId id, SnapshotId snapshot, uint64_t inherited_bytes) = 0;
  // Removing one that does not exist succeeds.
  virtual Task<Result<void>> remove_snapshot(SnapshotId snapshot) = 0;
  // Every snapshot that exists.
  virtual Task<Result<std::vector<SnapshotId>>> list_snapshots() = 0;
  // This host's public key and its signature of what is kept elsewhere: see
  // store/snapshot_manifest.h.
  virtual Task<Result<std::string>> sign_manifest(Digest manifest) = 0;
};

}  // namespace atl::isolate
