// The part of a driver that keeps volumes: files that belong to no isolate, which isolates have
// mounted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "async/task.h"
#include "base/result.h"
#include "base/volume_id.h"
#include "linux/volume_mounts.h"

namespace atl::isolate {

using linux::is_volume_path;
using linux::kMaxVolumePathBytes;
using linux::kMaxVolumes;

// A volume that an isolate has at a path.
struct VolumePlace {
  VolumeId volume;
  std::string path;  // is_volume_path()
  enum class Access : unsigned char { kWrite, kRead };
  Access access = Access::kWrite;
};

class VolumeKeeper {
 public:
  virtual ~VolumeKeeper() = default;

  // Empty, under an id that is not taken. On disk when this returns.
  virtual Task<Result<void>> create_volume(VolumeId volume, uint64_t limit_bytes) = 0;
  // That no isolate has. Removing one that does not exist succeeds.
  virtual Task<Result<void>> remove_volume(VolumeId volume) = 0;
  // Every volume that exists.
  virtual Task<Result<std::vector<VolumeId>>> list_volumes() = 0;
};

}  // namespace atl::isolate
