// The part of a driver that keeps apart what nobody knows, instead of removing it.
#pragma once

#include <variant>

#include "async/task.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/snapshot_id.h"
#include "base/volume_id.h"

namespace atl::isolate {

// What a list gave, of whichever kind.
using Found = std::variant<SandboxId, SnapshotId, VolumeId>;

class LostFound {
 public:
  virtual ~LostFound() = default;

  // For a week. An isolate ends, and its files are kept. Can be repeated.
  virtual Task<Result<void>> set_aside(Found found) = 0;
  // Removes what was set aside a week ago.
  virtual Task<Result<void>> sweep_lost_found() = 0;
};

}  // namespace atl::isolate
