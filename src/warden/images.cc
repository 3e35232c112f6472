#include "warden/images.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <memory>

#include "base/file.h"
#include "linux/directory_lock.h"
#include "linux/erofs_mount.h"
#include "linux/mounts.h"
#include "linux/root_file.h"

namespace atl::warden {
namespace {

std::string mount_point(const Host& host, const std::string& digest) {
  return host.run_dir + "/images/" + digest;
}

bool is_mounted(const std::string& target) {
  auto magic = linux::file_system_magic(target);
  return magic.ok() && *magic == linux::kErofsMagic;
}

Result<void> unmount_image(const Host& host, const std::string& name) {
  std::string target = mount_point(host, name);
  ATOLL_TRY_VOID(linux::unmount_if_mounted(target));
  if (rmdir(target.c_str()) != 0 && errno != ENOENT) return Error::system("rmdir " + target);
  return {};
}

}  // namespace

Result<void> mount_image(const Host& host, const Digest& digest) {
  std::string name = digest.string();
  ATOLL_TRY(Fd file, linux::open_root_file(host.stored_images.get(), name + ".erofs", O_RDONLY));
  std::string target = mount_point(host, name);
  if (is_mounted(target)) return {};
  // The jail may be cloned at this moment, with a copy of every descriptor.
  ATOLL_TRY(auto lock, linux::DirectoryLock::acquire(host.images.get()));
  if (is_mounted(target)) return {};
  ATOLL_TRY_VOID(make_directory(target, 0700));
  return linux::mount_erofs(file.get(), target);
}

Result<void> unmount_images(const Host& host) {
  ATOLL_TRY(Fd listing, open_at(host.images.get(), ".", O_RDONLY | O_DIRECTORY));
  std::unique_ptr<DIR, int (*)(DIR*)> directory(fdopendir(listing.release()), closedir);
  if (!directory) return Error::system("read the images directory");
  while (dirent* entry = readdir(directory.get())) {
    if (Digest::parse(entry->d_name)) ATOLL_TRY_VOID(unmount_image(host, entry->d_name));
  }
  return {};
}

Result<void> remove_image(const Host& host, const Digest& digest) {
  std::string file = digest.string() + ".erofs";
  if (unlinkat(host.stored_images.get(), file.c_str(), 0) == 0 || errno == ENOENT)
    return unmount_image(host, digest.string());
  return Error::system("unlink image " + file);
}

}  // namespace atl::warden
