#include "warden/tools.h"

#include <fcntl.h>
#include <sys/mount.h>

#include "base/file.h"
#include "warden/agent_binary.h"

namespace atl::warden {

Result<void> mount_tools(const Host& host, const std::string& sudo) {
  ATOLL_TRY(std::string program, read_program(sudo));
  std::string target = host.run_dir + "/tools";
  ATOLL_TRY_VOID(make_directory(target, 0700));
  unsigned long flags = MS_NOSUID | MS_NODEV;
  if (mount("tmpfs", target.c_str(), "tmpfs", flags, "mode=0555,size=16m,nr_inodes=4") != 0)
    return Error::system("mount " + target);
  ATOLL_TRY(Fd directory, open_file(target, O_RDONLY | O_DIRECTORY));
  ATOLL_TRY(Fd file, open_at(directory.get(), "sudo", O_WRONLY | O_CREAT | O_EXCL, 0555));
  ATOLL_TRY_VOID(write_all(file.get(), program));
  file.reset();  // open for writing, it would forbid what follows
  // Read-only as a file system, not only as a mount: no clone of the mount can be made writable.
  if (mount(nullptr, target.c_str(), nullptr, flags | MS_REMOUNT | MS_RDONLY, nullptr) != 0)
    return Error::system("make " + target + " read-only");
  return {};
}

}  // namespace atl::warden
