#include "linux/volume_mounts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/check.h"
#include "base/file.h"
#include "linux/mounts.h"
#include "linux/open_resolved.h"
#include "linux/subvolume.h"

namespace atl::linux {
namespace {

Error invalid(const char* what) { return Error(Code::kInvalid, what); }

bool is_unused(const VolumeMount& mount) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&mount);
  return std::all_of(bytes, bytes + sizeof mount, [](unsigned char byte) { return byte == 0; });
}

Result<void> check_mount(const VolumeMount& mount) {
  if (!VolumeId::parse(mount.name())) return invalid("bad volume id");
  if (mount.read_only > 1) return invalid("bad mode of a volume");
  for (uint8_t byte : mount.reserved)
    if (byte != 0) return invalid("a reserved field is set");
  const auto* end = std::find(mount.path.begin(), mount.path.end(), '\0');
  bool ends = end != mount.path.end() &&
              std::all_of(end, mount.path.end(), [](char byte) { return byte == 0; });
  if (!ends || !is_volume_path(mount.target())) return invalid("bad path of a volume");
  return {};
}

// Nothing is followed and nothing that is mounted is entered, so it stays in the file system of the
// root.
Result<Fd> enter(int directory, const std::string& name) {
  OpenHow how{.flags = O_RDONLY | O_DIRECTORY,
              .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
  Fd entered = open_resolved(directory, name, how);
  if (!entered) return Error::system("open the mount point of a volume");
  return entered;
}

Result<Fd> make_mount_point(int root, const std::string& path) {
  ATOLL_TRY(Fd directory, enter(root, "."));
  size_t begin = 1;
  while (begin <= path.size()) {
    size_t end = std::min(path.find('/', begin), path.size());
    std::string name = path.substr(begin, end - begin);
    if (mkdirat(directory.get(), name.c_str(), 0755) != 0 && errno != EEXIST)
      return Error::system("make the mount point of a volume");
    ATOLL_TRY(directory, enter(directory.get(), name));
    begin = end + 1;
  }
  return directory;
}

Result<void> open_to_all(int pool, const std::string& name) {
  ATOLL_TRY(Fd volume, open_at(pool, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  if (fchmod(volume.get(), 0777) != 0) return Error::system("chmod a volume");
  if (syncfs(volume.get()) != 0) return Error::system("sync the layer pool");
  return {};
}

}  // namespace

bool is_volume_path(std::string_view path) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+@-/";
  if (path.size() < 2 || path.size() > kMaxVolumePathBytes || path[0] != '/') return false;
  if (path.find_first_not_of(kAllowed) != path.npos) return false;
  size_t begin = 1;
  while (begin <= path.size()) {
    size_t end = std::min(path.find('/', begin), path.size());
    std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

Result<void> VolumeMounts::check() const {
  if (count > list.size()) return invalid("too many volumes");
  for (const VolumeMount& mount : mounts()) ATOLL_TRY_VOID(check_mount(mount));
  if (!std::all_of(list.begin() + static_cast<long>(count), list.end(), is_unused))
    return invalid("a volume that is not counted");
  return {};
}

Result<void> create_volume(int pool, const std::string& name, uint64_t limit_bytes) {
  ATOLL_TRY_VOID(create_subvolume(pool, name, limit_bytes));
  Result<void> opened = open_to_all(pool, name);
  if (!opened) ATOLL_TRY_VOID(remove_subvolume(pool, name));
  return opened;
}

Result<std::vector<Fd>> clone_volumes(const std::string& pool, const VolumeMounts& volumes,
                                      int user_namespace) {
  std::vector<Fd> trees;
  for (const VolumeMount& mount : volumes.mounts()) {
    ATOLL_TRY(Fd tree, clone_mount(AT_FDCWD, pool + "/" + mount.name()));
    uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    if (mount.read_only != 0) attributes |= MOUNT_ATTR_RDONLY;
    MountAttributes wanted = {.set = attributes, .id_map_namespace = user_namespace};
    ATOLL_TRY_VOID(set_attributes(tree.get(), wanted));
    trees.push_back(std::move(tree));
  }
  return trees;
}

Result<void> attach_volumes(int root, const VolumeMounts& volumes, std::span<const Fd> trees) {
  ATOLL_CHECK(trees.size() == volumes.count);
  for (size_t i = 0; i < trees.size(); ++i) {
    ATOLL_TRY(Fd target, make_mount_point(root, volumes.list[i].target()));
    ATOLL_TRY_VOID(attach_mount(trees[i].get(), target.get()));
  }
  return {};
}

}  // namespace atl::linux
