#include "store/disk_floor.h"

#include <sys/statvfs.h>

#include "base/log.h"
#include "base/result.h"

namespace atl::store {
namespace {

// Others write to the same disk, too.
constexpr std::chrono::milliseconds kStale{50};

}  // namespace

void DiskFloor::set(uint64_t floor_bytes) {
  std::lock_guard lock(mutex_);
  floor_bytes_ = floor_bytes;
  looked_at_ = {};
}

bool DiskFloor::has_room(uint64_t bytes, uint64_t left_bytes) {
  std::lock_guard lock(mutex_);
  if (floor_bytes_ == 0) return true;
  if (std::chrono::steady_clock::now() >= looked_at_ + kStale) look();
  if (bytes > room_bytes_ || left_bytes > room_bytes_ - bytes) return false;
  room_bytes_ -= bytes;
  return true;
}

void DiskFloor::look() {
  looked_at_ = std::chrono::steady_clock::now();
  room_bytes_ = 0;
  struct statvfs space;
  if (statvfs(directory_.c_str(), &space) != 0) {
    log_error("free space is not known", {Error::system("statvfs " + directory_)});
    return;
  }
  uint64_t free = space.f_bavail * space.f_frsize;
  if (free > floor_bytes_) room_bytes_ = free - floor_bytes_;
}

}  // namespace atl::store
