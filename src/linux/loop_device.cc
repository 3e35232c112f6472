#include "linux/loop_device.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <memory>
#include <string_view>

#include "base/file.h"

namespace atl::linux {
namespace {

constexpr int kMaxAttempts = 64;
constexpr uint32_t kBlockBytes = 4096;

bool is_loop_name(std::string_view name) {
  if (!name.starts_with("loop") || name.size() == 4) return false;
  return name.find_first_not_of("0123456789", 4) == std::string_view::npos;
}

// The kernel reports the backing device as huge_encode_dev() packs it: 12 bits of major between the
// low 8 and the high 12 bits of minor.
dev_t unpack_device(uint64_t packed) {
  return makedev((packed & 0xfff00) >> 8, (packed & 0xff) | ((packed >> 12) & 0xfff00));
}

bool shows(const Fd& device, const struct stat& file) {
  loop_info64 info = {};
  if (ioctl(device.get(), LOOP_GET_STATUS64, &info) != 0) return false;  // ENXIO: not attached
  return info.lo_inode == file.st_ino && unpack_device(info.lo_device) == file.st_dev;
}

}  // namespace

Result<std::optional<LoopDevice>> find_loop_device(int file) {
  struct stat wanted;
  if (fstat(file, &wanted) != 0) return Error::system("stat the backing file");
  std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir("/dev"), closedir);
  if (!directory) return Error::system("read /dev");
  while (dirent* entry = readdir(directory.get())) {
    if (entry->d_type != DT_BLK || !is_loop_name(entry->d_name)) continue;
    std::string path = std::string("/dev/") + entry->d_name;
    auto device = open_file(path, O_RDONLY);
    if (!device) continue;  // a node without a device behind it
    // Checked while we hold the device open: from here on it cannot be detached.
    if (shows(*device, wanted))
      return std::optional(LoopDevice{.path = path, .fd = std::move(*device)});
  }
  return std::optional<LoopDevice>();
}

Result<LoopDevice> attach_loop_device(int file, LoopAccess access) {
  ATOLL_TRY(Fd control, open_file("/dev/loop-control", O_RDWR));
  bool read_only = access == LoopAccess::kReadOnly;
  // Another process may take the free number between the two calls: then ask for the next one.
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    int number = ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) return Error::system("get a free loop device");
    std::string path = "/dev/loop" + std::to_string(number);
    ATOLL_TRY(Fd device, open_file(path, read_only ? O_RDONLY : O_RDWR));
    loop_config configuration = {};
    configuration.fd = static_cast<uint32_t>(file);
    configuration.block_size = kBlockBytes;  // 512 would rule out direct I/O on many disks
    configuration.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO;
    if (read_only) configuration.info.lo_flags |= LO_FLAGS_READ_ONLY;
    if (ioctl(device.get(), LOOP_CONFIGURE, &configuration) == 0)
      return LoopDevice{.path = std::move(path), .fd = std::move(device)};
    if (errno == EINVAL) {  // kernels that refuse direct I/O instead of ignoring it
      configuration.info.lo_flags &= ~static_cast<uint32_t>(LO_FLAGS_DIRECT_IO);
      if (ioctl(device.get(), LOOP_CONFIGURE, &configuration) == 0)
        return LoopDevice{.path = std::move(path), .fd = std::move(device)};
    }
    if (errno != EBUSY) return Error::system("configure " + path);
  }
  return Error(Code::kExhausted, "no free loop device", EBUSY);
}

Result<LoopDevice> share_loop_device(int file, LoopAccess access) {
  ATOLL_TRY(auto existing, find_loop_device(file));
  if (existing) return std::move(*existing);
  return attach_loop_device(file, access);
}

}  // namespace atl::linux
