#include "linux/devices.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "linux/filled_tmpfs.h"

namespace atl::linux {
namespace {

struct Node {
  const char* name;
  unsigned major, minor;
};
constexpr Node kNodes[] = {{"null", 1, 3},   {"zero", 1, 5},    {"full", 1, 7},
                           {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}};

constexpr Node kKvm = {"kvm", 10, 232};
constexpr const char* kKvmOfHost = "/dev/kvm";

struct Link {
  const char* name;
  const char* target;
};
constexpr Link kLinks[] = {{"fd", "/proc/self/fd"},
                           {"stdin", "/proc/self/fd/0"},
                           {"stdout", "/proc/self/fd/1"},
                           {"stderr", "/proc/self/fd/2"},
                           {"ptmx", "pts/ptmx"}};

Result<void> make_node(int directory, const Node& node) {
  if (mknodat(directory, node.name, S_IFCHR, makedev(node.major, node.minor)) != 0)
    return Error::system(std::string("mknod ") + node.name);
  if (fchmodat(directory, node.name, 0666, 0) != 0)  // the umask has its say in mknod
    return Error::system(std::string("chmod ") + node.name);
  return {};
}

// Whether it boots anything is another question.
bool host_has_kvm() {
  struct stat status;
  return stat(kKvmOfHost, &status) == 0 && S_ISCHR(status.st_mode) &&
         status.st_rdev == makedev(kKvm.major, kKvm.minor);
}

Result<void> fill(int directory, Devices which) {
  for (const Node& node : kNodes) ATOLL_TRY_VOID(make_node(directory, node));
  if (which == Devices::kWithKvm) ATOLL_TRY_VOID(make_node(directory, kKvm));
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

Result<Fd> mount_devices(const std::string& target, Devices which) {
  if (which == Devices::kWithKvm && !host_has_kvm()) return Fd();
  unsigned long flags = MS_NOSUID | MS_NOEXEC;
  ATOLL_TRY(Fd directory, mount_tmpfs(target, flags, "mode=0755,size=64k,nr_inodes=32"));
  ATOLL_TRY_VOID(fill(directory.get(), which));
  ATOLL_TRY_VOID(make_tmpfs_read_only(target, flags));
  return directory;
}

}  // namespace atl::linux
