#include "linux/open_resolved.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "linux/kernel_gaps.h"

namespace atl::linux {
namespace {

// A program that renames without end keeps nobody here.
constexpr int kMaxTries = 64;

// For kernels without openat2 (gVisor's), where all files are the sandbox's own. Part by part where
// no link may be followed; what the other ways of resolving keep out is not there.
Fd open_by_parts(int directory, const std::string& path, const OpenHow& how) {
  int flags = how.flags | O_CLOEXEC;
  if ((how.resolve & RESOLVE_NO_SYMLINKS) == 0) {
    bool in_root = (how.resolve & RESOLVE_IN_ROOT) != 0 && path.starts_with('/');
    return Fd(openat(directory, path.c_str() + (in_root ? 1 : 0), flags, how.mode));
  }
  Fd above;
  size_t begin = 0;
  while (true) {
    size_t end = std::min(path.find('/', begin), path.size());
    std::string name = path.substr(begin, end - begin);
    int from = above ? above.get() : directory;
    if (name == "..") errno = EXDEV;
    if (name == "..") return Fd();
    if (end == path.size())
      return Fd(openat(from, name.empty() ? "." : name.c_str(), flags | O_NOFOLLOW, how.mode));
    begin = end + 1;
    if (name.empty() || name == ".") continue;
    above = Fd(openat(from, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!above) return above;
  }
}

}  // namespace

Fd open_resolved(int directory, const std::string& path, const OpenHow& how) {
  open_how arguments = {};
  arguments.flags = static_cast<uint64_t>(how.flags | O_CLOEXEC);
  arguments.mode = how.mode;
  arguments.resolve = how.resolve;
  for (int i = 0;; ++i) {
    long fd = syscall(SYS_openat2, directory, path.c_str(), &arguments, sizeof arguments);
    if (fd < 0 && errno == ENOSYS && has_kernel_gaps()) return open_by_parts(directory, path, how);
    if (fd >= 0 || (errno != EAGAIN && errno != EINTR) || i == kMaxTries)
      return Fd(static_cast<int>(fd));
  }
}

}  // namespace atl::linux
