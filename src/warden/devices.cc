#include "warden/devices.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"

namespace atl::warden {
namespace {

struct Node {
  const char* name;
  unsigned major, minor;
};
constexpr Node kNodes[] = {{"null", 1, 3},   {"zero", 1, 5},    {"full", 1, 7},
                           {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}};

struct Link {
  const char* name;
  const char* target;
};
constexpr Link kLinks[] = {{"fd", "/proc/self/fd"},
                           {"stdin", "/proc/self/fd/0"},
                           {"stdout", "/proc/self/fd/1"},
                           {"stderr", "/proc/self/fd/2"},
                           {"ptmx", "pts/ptmx"}};

Result<void> fill(int directory) {
  for (const Node& node : kNodes) {
    if (mknodat(directory, node.name, S_IFCHR, makedev(node.major, node.minor)) != 0)
      return Error::system(std::string("mknod ") + node.name);
    if (fchmodat(directory, node.name, 0666, 0) != 0)  // the umask has its say in mknod
      return Error::system(std::string("chmod ") + node.name);
  }
  for (const Link& link : kLinks) {
    if (symlinkat(link.target, directory, link.name) != 0)
      return Error::system(std::string("symlink ") + link.name);
  }
  for (const char* name : {"pts", "shm"}) {
    if (mkdirat(directory, name, 0755) != 0) return Error::system(std::string("mkdir ") + name);
  }
  return {};
}

}  // namespace

Result<void> mount_devices(Host& host) {
  std::string target = host.run_dir + "/devices";
  ATOLL_TRY_VOID(make_directory(target, 0700));
  unsigned long flags = MS_NOSUID | MS_NOEXEC;
  if (mount("tmpfs", target.c_str(), "tmpfs", flags, "mode=0755,size=64k,nr_inodes=32") != 0)
    return Error::system("mount " + target);
  ATOLL_TRY(Fd directory, open_file(target, O_RDONLY | O_DIRECTORY));
  ATOLL_TRY_VOID(fill(directory.get()));
  // Read-only as a file system, not only as a mount: no clone of the mount can be made writable.
  if (mount(nullptr, target.c_str(), nullptr, flags | MS_REMOUNT | MS_RDONLY, nullptr) != 0)
    return Error::system("make " + target + " read-only");
  host.devices = std::move(directory);
  return {};
}

}  // namespace atl::warden
