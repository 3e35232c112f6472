// LockFile: a POSIX record lock that says who is alive. The kernel drops it with the process,
// however that ends, and tells anybody who may open the file which process holds it.
//
// POSIX locks belong to the process, not the descriptor: closing *any* descriptor of the same file
// drops them, so the holder opens its file exactly once; a forked child does not hold it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace atl::linux {

class LockFile {
 public:
  // Creates the file if needed. kConflict when another process holds the lock.
  static Result<LockFile> acquire(const std::string& path);

  // Lets a program that this process executes hold it too, by a descriptor that it must not close;
  // it acquires the lock again for itself.
  Result<void> keep_across_exec();

 private:
  explicit LockFile(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

struct LockHolder {
  pid_t pid;
  Fd pidfd;
};

// The process that holds the lock on `path`, or nothing when nobody does or the file is absent. A
// holder that does not run as `uid` is an error: the directory may belong to somebody less trusted
// than the caller.
Result<std::optional<LockHolder>> find_lock_holder(const std::string& path, uid_t uid);

}  // namespace atl::linux
