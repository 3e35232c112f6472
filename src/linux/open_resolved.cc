#include "linux/open_resolved.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace atl::linux {
namespace {

// A program that renames without end keeps nobody here.
constexpr int kMaxTries = 64;

}  // namespace

Fd open_resolved(int directory, const std::string& path, const OpenHow& how) {
  open_how arguments = {};
  arguments.flags = static_cast<uint64_t>(how.flags | O_CLOEXEC);
  arguments.mode = how.mode;
  arguments.resolve = how.resolve;
  for (int i = 0;; ++i) {
    long fd = syscall(SYS_openat2, directory, path.c_str(), &arguments, sizeof arguments);
    if (fd >= 0 || (errno != EAGAIN && errno != EINTR) || i == kMaxTries)
      return Fd(static_cast<int>(fd));
  }
}

}  // namespace atl::linux
