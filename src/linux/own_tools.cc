#include "linux/own_tools.h"

#include <fcntl.h>
#include <sys/mount.h>

#include "base/file.h"
#include "linux/filled_tmpfs.h"

namespace atl::linux {

Result<void> mount_tools(const std::string& target, std::string_view sudo) {
  unsigned long flags = MS_NOSUID | MS_NODEV;
  ATOLL_TRY(Fd directory, mount_tmpfs(target, flags, "mode=0555,size=16m,nr_inodes=4"));
  ATOLL_TRY(Fd file, open_at(directory.get(), "sudo", O_WRONLY | O_CREAT | O_EXCL, 0555));
  ATOLL_TRY_VOID(write_all(file.get(), sudo));
  file.reset();  // open for writing, it would forbid what follows
  return make_tmpfs_read_only(target, flags);
}

}  // namespace atl::linux
