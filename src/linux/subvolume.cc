#include "linux/subvolume.h"

#include <endian.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstring>

#include "base/file.h"
#include "linux/quota_groups.h"

namespace atl::linux {
namespace {

// linux/btrfs.h of Debian 12 (6.1) does not know it yet.
constexpr uint64_t kEnableSimpleQuota = 4;
constexpr uint64_t kSweepInterval = 256;

Result<void> copy_name(char* target, size_t size, const std::string& name) {
  if (name.empty() || name.size() >= size) return Error::from_errno("subvolume name", ENAMETOOLONG);
  std::memcpy(target, name.c_str(), name.size() + 1);
  return {};
}

Result<uint64_t> subvolume_id(int subvolume) {
  btrfs_ioctl_ino_lookup_args lookup = {};
  lookup.objectid = BTRFS_FIRST_FREE_OBJECTID;
  if (ioctl(subvolume, BTRFS_IOC_INO_LOOKUP, &lookup) != 0)
    return Error::system("look up the id of a subvolume");
  return static_cast<uint64_t>(lookup.treeid);
}

// What the quota tree has of one kind about a subvolume.
template <typename Item>
Result<void> read_quota_item(int subvolume, uint32_t type, Item& item) {
  ATOLL_TRY(uint64_t id, subvolume_id(subvolume));
  btrfs_ioctl_search_args search = {};
  search.key.tree_id = BTRFS_QUOTA_TREE_OBJECTID;
  search.key.min_type = search.key.max_type = type;
  search.key.min_offset = search.key.max_offset = id;
  search.key.max_transid = ~0ull;
  search.key.nr_items = 1;
  if (ioctl(subvolume, BTRFS_IOC_TREE_SEARCH, &search) != 0)
    return Error::system("search the quotas");
  btrfs_ioctl_search_header header;
  static_assert(sizeof header + sizeof item <= sizeof search.buf);
  std::memcpy(&header, search.buf, sizeof header);
  if (search.key.nr_items != 1 || header.len < sizeof item)
    return Error::from_errno("the subvolume has no quota", ENODATA);
  std::memcpy(&item, search.buf + sizeof header, sizeof item);
  return {};
}

// From sysfs: "squota" or "qgroup".
Result<BtrfsQuotas> read_quota_mode(int file_system) {
  btrfs_ioctl_fs_info_args info = {};
  if (ioctl(file_system, BTRFS_IOC_FS_INFO, &info) != 0) return Error::system("identify btrfs");
  std::string path = "/sys/fs/btrfs/";
  for (size_t i = 0; i < sizeof info.fsid; ++i) {
    static constexpr char kDigits[] = "0123456789abcdef";
    if (i == 4 || i == 6 || i == 8 || i == 10) path += '-';
    path += kDigits[info.fsid[i] >> 4];
    path += kDigits[info.fsid[i] & 15];
  }
  ATOLL_TRY(std::string mode, read_file(path + "/qgroups/mode"));
  return mode.starts_with("squota") ? BtrfsQuotas::kSimple : BtrfsQuotas::kClassic;
}

}  // namespace

Result<BtrfsQuotas> enable_btrfs_quotas(int file_system) {
  btrfs_ioctl_quota_ctl_args control = {};
  control.cmd = kEnableSimpleQuota;
  bool enabled = ioctl(file_system, BTRFS_IOC_QUOTA_CTL, &control) == 0 || errno == EEXIST;
  // The kernel answers the same where the other kind is on.
  if (enabled) return read_quota_mode(file_system);
  if (errno != EINVAL && errno != EOPNOTSUPP) return Error::system("enable simple quotas");
  control = {};
  control.cmd = BTRFS_QUOTA_CTL_ENABLE;
  if (ioctl(file_system, BTRFS_IOC_QUOTA_CTL, &control) == 0 || errno == EEXIST)
    return BtrfsQuotas::kClassic;
  return Error::system("enable quotas");
}

Result<void> create_subvolume(int directory, const std::string& name, uint64_t limit_bytes) {
  btrfs_ioctl_vol_args_v2 create = {};
  ATOLL_TRY_VOID(copy_name(create.name, sizeof create.name, name));
  if (ioctl(directory, BTRFS_IOC_SUBVOL_CREATE_V2, &create) != 0)
    return Error::system("create subvolume " + name);
  ATOLL_TRY(Fd subvolume, open_at(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  return set_subvolume_limit(subvolume.get(), limit_bytes);
}

Result<void> set_subvolume_limit(int subvolume, uint64_t limit_bytes) {
  ATOLL_TRY(uint64_t id, subvolume_id(subvolume));
  btrfs_ioctl_qgroup_limit_args limit = {};
  limit.qgroupid = id;  // level 0
  limit.lim.flags = BTRFS_QGROUP_LIMIT_MAX_RFER;
  limit.lim.max_rfer = limit_bytes;
  if (ioctl(subvolume, BTRFS_IOC_QGROUP_LIMIT, &limit) != 0)
    return Error::system("limit a subvolume");
  return {};
}

Result<void> snapshot_subvolume(int source, int directory, const std::string& name,
                                SubvolumeAccess access) {
  btrfs_ioctl_vol_args_v2 create = {};
  ATOLL_TRY_VOID(copy_name(create.name, sizeof create.name, name));
  create.fd = source;
  if (access == SubvolumeAccess::kReadOnly) create.flags = BTRFS_SUBVOL_RDONLY;
  if (ioctl(directory, BTRFS_IOC_SNAP_CREATE_V2, &create) != 0)
    return Error::system("create snapshot " + name);
  return {};
}

Result<uint64_t> read_subvolume_usage(int subvolume) {
  btrfs_qgroup_info_item item;
  ATOLL_TRY_VOID(read_quota_item(subvolume, BTRFS_QGROUP_INFO_KEY, item));
  return le64toh(item.rfer);
}

Result<uint64_t> read_subvolume_limit(int subvolume) {
  btrfs_qgroup_limit_item item;
  ATOLL_TRY_VOID(read_quota_item(subvolume, BTRFS_QGROUP_LIMIT_KEY, item));
  if ((le64toh(item.flags) & BTRFS_QGROUP_LIMIT_MAX_RFER) == 0)
    return Error::from_errno("the subvolume has no limit", ENODATA);
  return le64toh(item.max_rfer);
}

Result<void> rename_subvolume(int directory, const std::string& from, const std::string& to) {
  if (renameat(directory, from.c_str(), directory, to.c_str()) != 0 && errno != ENOENT)
    return Error::system("rename subvolume " + from);
  if (faccessat(directory, to.c_str(), F_OK, 0) != 0) return Error::system("find subvolume " + to);
  if (syncfs(directory) != 0) return Error::system("sync subvolume " + to);
  return {};
}

Result<void> remove_subvolume(int directory, const std::string& name) {
  btrfs_ioctl_vol_args remove = {};
  ATOLL_TRY_VOID(copy_name(remove.name, sizeof remove.name, name));
  int opened = openat(directory, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (opened < 0 && errno == ENOENT) return {};
  Fd subvolume(opened);
  if (!subvolume) return Error::system("open subvolume " + name);
  ATOLL_TRY(uint64_t id, subvolume_id(subvolume.get()));
  subvolume.reset();
  if (ioctl(directory, BTRFS_IOC_SNAP_DESTROY, &remove) != 0 && errno != ENOENT)
    return Error::system("remove subvolume " + name);
  // Ids are given in turn, so this is every kSweepInterval-th removal or so, also across restarts.
  if (id % kSweepInterval == 0) return remove_stale_quota_groups(directory);
  return {};
}

}  // namespace atl::linux
