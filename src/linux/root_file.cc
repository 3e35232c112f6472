#include "linux/root_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/file.h"

namespace atl::linux {

Result<Fd> open_root_file(int directory, const std::string& name, int flags) {
  ATOLL_TRY(Fd file, open_at(directory, name, flags | O_NOFOLLOW));
  struct stat status;
  if (fstat(file.get(), &status) != 0) return Error::system("stat " + name);
  if (!S_ISREG(status.st_mode) || status.st_uid != 0 || (status.st_mode & 022) != 0)
    return Error::from_errno(name + " must be a regular file that only root can write", EPERM);
  return file;
}

}  // namespace atl::linux
