// The mount API that works on descriptors (fsopen(2), open_tree(2), move_mount(2),
// mount_setattr(2)): a mount is made or cloned detached, gets its attributes, and is attached to a
// directory that is already open. No path is resolved twice, so nothing can be swapped between the
// check and the mount.
#pragma once

#include <sys/mount.h>

#include <cstdint>
#include <initializer_list>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace atl::linux {

struct MountOption {
  const char* key;
  std::string value;  // empty: a flag
};

// A new file system instance, mounted nowhere yet. `attributes` are MOUNT_ATTR_*.
Result<Fd> make_mount(const char* file_system, std::initializer_list<MountOption> options,
                      uint64_t attributes);

// A detached copy of the one mount at `path`, without what is mounted below it.
Result<Fd> clone_mount(int directory, const std::string& path);

struct MountAttributes {
  uint64_t set = 0;
  int id_map_namespace = -1;  // user namespace whose map the mount shall show its owners in
};
Result<void> set_attributes(int mount, const MountAttributes& attributes);

// Puts a detached mount onto an open directory (O_PATH is enough).
Result<void> attach_mount(int mount, int directory);
Result<void> attach_mount_at(int mount, int directory, const std::string& name);

// An open directory beneath `root` to attach a mount to; a symbolic link on the way is refused.
Result<Fd> open_mount_target(int root, const char* path);

// ".." of a root stays there but enters what is mounted over it: an error if there is anything.
Result<void> check_nothing_above(const char* root);

// Nothing mounted here reaches another namespace, and nothing from there comes in.
Result<void> make_all_mounts_private();

// Detaches; nothing mounted there is a success.
Result<void> unmount_if_mounted(const std::string& path);

// The magic of the file system that `path` is on, as statfs(2) gives it.
Result<uint64_t> file_system_magic(const std::string& path);
inline constexpr uint64_t kErofsMagic = 0xe0f5e1e2;
inline constexpr uint64_t kBtrfsMagic = 0x9123683e;
inline constexpr uint64_t kCgroup2Magic = 0x63677270;

}  // namespace atl::linux
