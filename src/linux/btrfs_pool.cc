#include "linux/btrfs_pool.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "base/log.h"
#include "linux/btrfs_file.h"
#include "linux/loop_device.h"
#include "linux/mounts.h"
#include "linux/quota_groups.h"
#include "linux/root_file.h"

namespace atl::linux {
namespace {

// The blocks of removed layers are freed by a thread that wakes after a commit, so the interval is
// how long they stay taken. With the kernel's 30 s, thousands of dead layers would pile up in a
// busy pool. Discards would give the blocks of the file back to the disk.
constexpr const char* kPoolOptions = "commit=5,nodiscard";
// What atolld wants to find free, and a little.
constexpr uint64_t kLeftBytes = (1ull << 30) + (256ull << 20);

uint64_t default_bytes(uint64_t half) {
  uint64_t bytes = std::min(half, kMaxDefaultPoolBytes);
  uint64_t free = 2 * half;
  bool leaves_little = free - bytes < kLeftBytes;
  if (leaves_little && free >= kLeftBytes + kMinPoolBytes) bytes = free - kLeftBytes;
  return bytes / 4096 * 4096;
}

Result<void> create_pool_file(const PoolPlace& place, uint64_t bytes) {
  if (bytes == 0) {
    ATOLL_TRY(uint64_t half, half_of_free_space(place.directory));
    bytes = default_bytes(half);
  }
  if (bytes < kMinPoolBytes)
    return Error(Code::kExhausted, "the layer pool would have less than 256 MiB", ENOSPC);
  ATOLL_TRY_VOID(create_btrfs_file(place.file(), bytes));
  log_info("layer pool made", {{"file", place.file()}, {"bytes", bytes}});
  return {};
}

Result<Fd> open_pool_file(const PoolPlace& place) {
  ATOLL_TRY(Fd state, open_file(place.directory, O_PATH | O_DIRECTORY));
  return open_root_file(state.get(), "pool.btrfs", O_RDWR);
}

// One of an older release has blocks only for what was written to it. The disk may not have the
// rest; then it is as safe as it was.
void back_pool_file(int file) {
  auto backed = allocate_whole_file(file, kLeftBytes);
  if (!backed) log_warning("the layer pool may find no room on the disk", {backed.error()});
}

}  // namespace

bool pool_exists(const PoolPlace& place) { return access(place.file().c_str(), F_OK) == 0; }

Result<void> mount_pool(const PoolPlace& place, uint64_t bytes) {
  if (!pool_exists(place)) ATOLL_TRY_VOID(create_pool_file(place, bytes));
  ATOLL_TRY(Fd file, open_pool_file(place));
  back_pool_file(file.get());
  ATOLL_TRY(auto device, share_loop_device(file.get(), LoopAccess::kReadWrite));
  ATOLL_TRY_VOID(make_directory(place.mount, 0700));
  return mount_btrfs(device.path, place.mount, kPoolOptions);
}

Result<MountedPool> open_pool(const PoolPlace& place) {
  ATOLL_TRY_VOID(check_pool(place));
  MountedPool pool;
  ATOLL_TRY(pool.root, open_file(place.mount, O_RDONLY | O_DIRECTORY));
  ATOLL_TRY(Fd file, open_pool_file(place));
  ATOLL_TRY(auto device, find_loop_device(file.get()));
  if (!device) return Error::from_errno("find the loop device of the layer pool", ENODEV);
  struct stat status;
  if (fstat(device->fd.get(), &status) != 0) return Error::system("stat " + device->path);
  pool.device = status.st_rdev;
  auto quotas = enable_btrfs_quotas(pool.root.get());
  pool.quotas = quotas ? *quotas : BtrfsQuotas::kNone;
  if (!quotas) log_error("launches will be refused", {quotas.error()});
  ATOLL_TRY_VOID(remove_stale_quota_groups(pool.root.get()));
  return pool;
}

Result<void> unmount_pool(const PoolPlace& place) {
  ATOLL_TRY_VOID(unmount_if_mounted(place.mount));
  if (!pool_exists(place)) return {};
  ATOLL_TRY(Fd file, open_pool_file(place));
  return await_detached(file.get());
}

Result<void> check_pool(const PoolPlace& place) {
  ATOLL_TRY(uint64_t magic, file_system_magic(place.mount));
  if (magic != kBtrfsMagic) return Error::from_errno("the layer pool is not mounted", ENODEV);
  struct statvfs status;
  if (statvfs(place.mount.c_str(), &status) != 0) return Error::system("statvfs the layer pool");
  if ((status.f_flag & ST_RDONLY) != 0)
    return Error::from_errno("the layer pool is read-only after an error", EROFS);
  return {};
}

}  // namespace atl::linux
