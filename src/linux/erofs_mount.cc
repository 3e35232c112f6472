#include "linux/erofs_mount.h"

#include <sys/mount.h>

#include "linux/loop_device.h"

namespace atl::linux {
namespace {

constexpr unsigned long kFlags = MS_RDONLY | MS_NOSUID | MS_NODEV;

}  // namespace

Result<void> mount_erofs(int file, const std::string& target) {
  std::string source = "/proc/self/fd/" + std::to_string(file);
  if (mount(source.c_str(), target.c_str(), "erofs", kFlags, nullptr) == 0) return {};
  // Kernels before 6.12 want a block device. Whoever mounted this image before may still use one:
  // mounting that gives the superblock they use, and with it their page cache.
  if (errno != ENOTBLK) return Error::system("mount image on " + target);
  ATOLL_TRY(auto device, share_loop_device(file, LoopAccess::kReadOnly));
  if (mount(device.path.c_str(), target.c_str(), "erofs", kFlags, nullptr) != 0)
    return Error::system("mount image from " + device.path + " on " + target);
  return {};
}

}  // namespace atl::linux
