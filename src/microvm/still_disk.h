// StillDisk: has the file system of a guest's disk written out and stand still for whoever asks, as
// agent/still_files.h says. One process holds it, one asker at a time; it lets go when the asker
// says so or is gone, and after a time in any case, so that nothing can leave a guest stuck.
#pragma once

#include <sys/types.h>

#include "base/fd.h"

namespace atl::microvm {

class StillDisk {
 public:
  // `mount` is an open directory of it.
  explicit StillDisk(Fd mount) : mount_(std::move(mount)) {}

  void begin(Fd asker);

 private:
  Fd mount_;
  pid_t holder_ = -1;
};

}  // namespace atl::microvm
