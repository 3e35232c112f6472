#include "linux/mounts.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace atl::linux {

Result<Fd> make_mount(const char* file_system, std::initializer_list<MountOption> options,
                      uint64_t attributes) {
  Fd context(fsopen(file_system, FSOPEN_CLOEXEC));
  if (!context) return Error::system(std::string("fsopen ") + file_system);
  for (const MountOption& option : options) {
    bool flag = option.value.empty();
    int result = fsconfig(context.get(), flag ? FSCONFIG_SET_FLAG : FSCONFIG_SET_STRING, option.key,
                          flag ? nullptr : option.value.c_str(), 0);
    if (result != 0)
      return Error::system(std::string("option ") + option.key + " of " + file_system);
  }
  if (fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0)
    return Error::system(std::string("create file system ") + file_system);
  Fd mount(fsmount(context.get(), FSMOUNT_CLOEXEC, static_cast<unsigned>(attributes)));
  if (!mount) return Error::system(std::string("fsmount ") + file_system);
  return mount;
}

Result<Fd> clone_mount(int directory, const std::string& path) {
  unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC;
  if (path.empty()) flags |= AT_EMPTY_PATH;
  Fd mount(open_tree(directory, path.c_str(), flags));
  if (!mount) return Error::system("open_tree " + path);
  return mount;
}

Result<void> set_attributes(int mount, const MountAttributes& attributes) {
  mount_attr request = {};
  request.attr_set = attributes.set;
  if (attributes.id_map_namespace >= 0) {
    request.attr_set |= MOUNT_ATTR_IDMAP;
    request.userns_fd = static_cast<uint64_t>(attributes.id_map_namespace);
  }
  if (mount_setattr(mount, "", AT_EMPTY_PATH, &request, sizeof request) != 0)
    return Error::system("mount_setattr");
  return {};
}

Result<void> attach_mount(int mount, int directory) {
  if (move_mount(mount, "", directory, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) != 0)
    return Error::system("move_mount");
  return {};
}

Result<void> attach_mount_at(int mount, int directory, const std::string& name) {
  if (move_mount(mount, "", directory, name.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0)
    return Error::system("move_mount to " + name);
  return {};
}

Result<Fd> open_mount_target(int root, const char* path) {
  open_how how = {};
  how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  Fd target(static_cast<int>(syscall(SYS_openat2, root, path, &how, sizeof how)));
  if (!target) return Error::system(std::string("open mount target ") + path);
  return target;
}

Result<void> check_nothing_above(const char* root) {
  struct statx here, above;
  std::string parent = std::string(root) + "/..";
  if (statx(AT_FDCWD, root, 0, STATX_MNT_ID, &here) != 0 ||
      statx(AT_FDCWD, parent.c_str(), 0, STATX_MNT_ID, &above) != 0)
    return Error::system("statx the new root");
  if (here.stx_mnt_id != above.stx_mnt_id)
    return Error::from_errno("something is mounted over the new root", EBUSY);
  return {};
}

Result<void> make_all_mounts_private() {
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return Error::system("make mounts private");
  return {};
}

Result<void> unmount_if_mounted(const std::string& path) {
  if (umount2(path.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) == 0) return {};
  if (errno == EINVAL || errno == ENOENT) return {};  // no mount point; no such directory
  return Error::system("umount " + path);
}

Result<uint64_t> file_system_magic(const std::string& path) {
  struct statfs status;
  if (statfs(path.c_str(), &status) != 0) return Error::system("statfs " + path);
  // f_type is signed and erofs' magic has the top bit of 32 set.
  return static_cast<uint64_t>(status.f_type) & 0xffffffffu;
}

}  // namespace atl::linux
