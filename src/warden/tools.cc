#include "warden/tools.h"

#include <fcntl.h>
#include <sys/mount.h>

#include "base/file.h"
#include "linux/filled_tmpfs.h"
#include "linux/program_file.h"

namespace atl::warden {

Result<void> mount_tools(const Host& host, const std::string& sudo) {
  ATOLL_TRY(std::string program, linux::read_program(sudo));
  std::string target = host.run_dir + "/tools";
  unsigned long flags = MS_NOSUID | MS_NODEV;
  ATOLL_TRY(Fd directory, linux::mount_tmpfs(target, flags, "mode=0555,size=16m,nr_inodes=4"));
  ATOLL_TRY(Fd file, open_at(directory.get(), "sudo", O_WRONLY | O_CREAT | O_EXCL, 0555));
  ATOLL_TRY_VOID(write_all(file.get(), program));
  file.reset();  // open for writing, it would forbid what follows
  return linux::make_tmpfs_read_only(target, flags);
}

}  // namespace atl::warden
