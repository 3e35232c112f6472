#include "linux/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include "base/file.h"

namespace atl::linux {

Result<DirectoryLock> DirectoryLock::acquire(int directory) {
  ATOLL_TRY(Fd opened, open_at(directory, ".", O_RDONLY | O_DIRECTORY));
  while (flock(opened.get(), LOCK_EX) != 0)
    if (errno != EINTR) return Error::system("lock a directory");
  return DirectoryLock(std::move(opened));
}

DirectoryLock::~DirectoryLock() {
  if (opened_) flock(opened_.get(), LOCK_UN);
}

}  // namespace atl::linux
