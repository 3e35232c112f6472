// DiskFloor: how much of a disk must stay free. Asked before every write of those who keep it, so
// the disk itself is looked at only now and then. May be used by several threads at once.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace atl::store {

class DiskFloor {
 public:
  // Of the disk that `directory` is on; 0: nothing must stay free.
  explicit DiskFloor(std::string directory, uint64_t floor_bytes = 0)
      : directory_(std::move(directory)), floor_bytes_(floor_bytes) {}

  void set(uint64_t floor_bytes);
  // False: those bytes would come out of what must stay free, or what would be left above that is
  // less than `left_bytes`, or the disk cannot be asked.
  bool has_room(uint64_t bytes, uint64_t left_bytes = 0);

 private:
  void look();

  const std::string directory_;
  std::mutex mutex_;
  uint64_t floor_bytes_;
  uint64_t room_bytes_ = 0;  // above the floor, when last looked at, less what was written since
  std::chrono::steady_clock::time_point looked_at_{};
};

}  // namespace atl::store
