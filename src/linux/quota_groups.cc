#include "linux/quota_groups.h"

#include <endian.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <sys/ioctl.h>

#include <cstring>
#include <vector>

namespace atl::linux {
namespace {

// Ids of groups of level 0, one per subvolume, that hold nothing as far as the last commit knows.
// `first` moves behind those that were looked at; false: there are no more.
Result<bool> find_empty_groups(int file_system, uint64_t& first, std::vector<uint64_t>& found) {
  btrfs_ioctl_search_args search = {};
  search.key.tree_id = BTRFS_QUOTA_TREE_OBJECTID;
  search.key.min_type = search.key.max_type = BTRFS_QGROUP_INFO_KEY;
  search.key.min_offset = first;
  search.key.max_offset = (1ull << BTRFS_QGROUP_LEVEL_SHIFT) - 1;
  search.key.max_transid = ~0ull;
  search.key.nr_items = ~0u;
  if (ioctl(file_system, BTRFS_IOC_TREE_SEARCH, &search) != 0) {
    if (errno == ENOENT) return false;  // no quotas, so no tree of them
    return Error::system("search the quota groups");
  }
  size_t at = 0;
  for (uint32_t i = 0; i < search.key.nr_items; ++i) {
    btrfs_ioctl_search_header header;
    btrfs_qgroup_info_item item;
    std::memcpy(&header, search.buf + at, sizeof header);
    at += sizeof header;
    if (header.type == BTRFS_QGROUP_INFO_KEY && header.len >= sizeof item) {
      std::memcpy(&item, search.buf + at, sizeof item);
      if (le64toh(item.rfer) == 0) found.push_back(header.offset);
    }
    at += header.len;
    first = header.offset + 1;
  }
  return search.key.nr_items > 0;
}

// Until its last block is free. A new subvolume's group is empty too, and early kernels of 6.1
// would remove it, and the limit with it.
Result<bool> subvolume_exists(int file_system, uint64_t id) {
  btrfs_ioctl_search_args search = {};
  search.key.tree_id = BTRFS_ROOT_TREE_OBJECTID;
  search.key.min_objectid = search.key.max_objectid = id;
  search.key.min_type = search.key.max_type = BTRFS_ROOT_ITEM_KEY;
  search.key.max_offset = ~0ull;
  search.key.max_transid = ~0ull;
  search.key.nr_items = 1;
  if (ioctl(file_system, BTRFS_IOC_TREE_SEARCH, &search) != 0)
    return Error::system("search a subvolume");
  return search.key.nr_items > 0;
}

Result<void> remove_group_of(int file_system, uint64_t id) {
  btrfs_ioctl_qgroup_create_args arguments = {};
  arguments.create = 0;
  arguments.qgroupid = id;
  if (ioctl(file_system, BTRFS_IOC_QGROUP_CREATE, &arguments) == 0) return {};
  if (errno == EBUSY || errno == ENOENT) return {};  // in use after all; removed by the kernel
  return Error::system("remove a quota group");
}

}  // namespace

Result<void> remove_stale_quota_groups(int file_system) {
  std::vector<uint64_t> empty;
  uint64_t first = BTRFS_FIRST_FREE_OBJECTID;
  while (true) {
    ATOLL_TRY(bool more, find_empty_groups(file_system, first, empty));
    if (!more) break;
  }
  for (uint64_t id : empty) {
    ATOLL_TRY(bool exists, subvolume_exists(file_system, id));
    if (!exists) ATOLL_TRY_VOID(remove_group_of(file_system, id));
  }
  return {};
}

}  // namespace atl::linux
