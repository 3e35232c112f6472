#include "linux/file_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <string_view>

namespace atl::linux {
namespace {

Result<void> remove_beneath(int parent, const std::string& name, int depth) {
  if (unlinkat(parent, name.c_str(), 0) == 0 || errno == ENOENT) return {};
  if (errno != EISDIR) return Error::system("unlink " + name);
  if (depth > kMaxTreeDepth) return Error::from_errno("remove " + name, ELOOP);
  int opened = openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (opened < 0) return Error::system("open " + name);
  std::unique_ptr<DIR, int (*)(DIR*)> directory(fdopendir(opened), closedir);
  if (!directory) return Error::system("read directory " + name);
  while (dirent* entry = readdir(directory.get())) {
    std::string_view child = entry->d_name;
    if (child == "." || child == "..") continue;
    ATOLL_TRY_VOID(remove_beneath(dirfd(directory.get()), std::string(child), depth + 1));
  }
  if (unlinkat(parent, name.c_str(), AT_REMOVEDIR) != 0) return Error::system("rmdir " + name);
  return {};
}

}  // namespace

Result<void> remove_tree(int parent, const std::string& name) {
  return remove_beneath(parent, name, 0);
}

Result<void> chown_at(int directory, const char* name, uid_t owner) {
  if (fchownat(directory, name, owner, owner, AT_SYMLINK_NOFOLLOW) != 0)
    return Error::system(std::string("chown ") + name);
  return {};
}

}  // namespace atl::linux
