// DirectoryLock: flock(2) on a directory, which keeps others out until it is destroyed.
#pragma once

#include "base/fd.h"
#include "base/result.h"

namespace atl::linux {

class DirectoryLock {
 public:
  // Waits. Opens the directory anew: a lock belongs to the open file, not to the process, and
  // `directory` may be shared with those that are to be kept out.
  static Result<DirectoryLock> acquire(int directory);

  DirectoryLock(DirectoryLock&&) = default;
  DirectoryLock& operator=(DirectoryLock&&) = delete;
  // Unlocks, not only closes: a process that was forked meanwhile has a copy of the descriptor,
  // and would hold the lock for as long as it keeps that.
  ~DirectoryLock();

 private:
  explicit DirectoryLock(Fd opened) : opened_(std::move(opened)) {}
  Fd opened_;
};

}  // namespace atl::linux
