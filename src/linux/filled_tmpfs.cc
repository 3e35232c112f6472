#include "linux/filled_tmpfs.h"

#include <fcntl.h>
#include <sys/mount.h>

#include "base/file.h"

namespace atl::linux {

Result<Fd> mount_tmpfs(const std::string& target, unsigned long flags, const char* options) {
  ATOLL_TRY_VOID(make_directory(target, 0700));
  if (mount("tmpfs", target.c_str(), "tmpfs", flags, options) != 0)
    return Error::system("mount " + target);
  return open_file(target, O_RDONLY | O_DIRECTORY);
}

Result<void> make_tmpfs_read_only(const std::string& target, unsigned long flags) {
  // As a file system, not only as a mount: no clone of the mount can be made writable.
  if (mount(nullptr, target.c_str(), nullptr, flags | MS_REMOUNT | MS_RDONLY, nullptr) != 0)
    return Error::system("make " + target + " read-only");
  return {};
}

}  // namespace atl::linux
