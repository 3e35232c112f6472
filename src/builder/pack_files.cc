#include "builder/pack_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "base/fd.h"
#include "base/file.h"
#include "builder/tree.h"
#include "linux/open_resolved.h"

namespace atl::builder {
namespace {

constexpr size_t kMaxCopyStep = 1 << 30;

uid_t owner_of(const std::string& path) { return path.starts_with("home/user/") ? 1000 : 0; }

struct Place {
  int root;
  std::string path;  // in the image, without a slash at its ends; empty: its root
};

Fd open_inside(const Place& place) {
  return linux::open_resolved(place.root, place.path.empty() ? "." : place.path,
                              {.flags = O_RDONLY | O_DIRECTORY,
                               .mode = 0,
                               .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS});
}

Result<void> copy_file(int from, const char* name, int into, const std::string& path) {
  ATOLL_TRY(Fd source, open_at(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  struct stat facts;
  if (fstat(source.get(), &facts) != 0) return Error::system("stat " + path);
  if (!S_ISREG(facts.st_mode))
    return Error(Code::kInvalid, path + ": only plain files can come with a template");
  ATOLL_TRY_VOID(remove_at(into, name));
  ATOLL_TRY(Fd target, open_at(into, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  while (true) {
    ssize_t count = sendfile(target.get(), source.get(), nullptr, kMaxCopyStep);
    if (count < 0) return Error::system("copy " + path);
    if (count == 0) break;
  }
  uid_t owner = owner_of(path);
  if (fchown(target.get(), owner, owner) != 0 ||
      fchmod(target.get(), (facts.st_mode & 0100) != 0 ? 0755 : 0644) != 0)
    return Error::system("copy " + path);
  return {};
}

Result<void> copy_directory(Fd from, const Place& place, size_t depth) {
  if (depth > kMaxDepth) return Error(Code::kInvalid, place.path + " is deeper than 128");
  Fd into = open_inside(place);
  if (!into) return Error(Code::kInvalid, place.path + " is not a directory of the image");
  int listed = from.get();
  std::unique_ptr<DIR, int (*)(DIR*)> entries(fdopendir(from.release()), closedir);
  if (!entries) return Error::system("read the files of the template");
  while (const dirent* entry = readdir(entries.get())) {
    std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    std::string path = place.path + (place.path.empty() ? "" : "/") + name;
    auto inner = open_at(listed, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!inner) {
      ATOLL_TRY_VOID(copy_file(listed, name.c_str(), into.get(), path));
      continue;
    }
    bool made = mkdirat(into.get(), name.c_str(), 0755) == 0;
    if (!made && errno != EEXIST) return Error::system("mkdir " + path);
    // Packages of the source may have brought a directory of the home before, as root.
    uid_t owner = owner_of(path + "/");
    bool is_given = made || owner != 0;
    if (is_given && fchownat(into.get(), name.c_str(), owner, owner, AT_SYMLINK_NOFOLLOW) != 0)
      return Error::system("chown " + path);
    ATOLL_TRY_VOID(copy_directory(std::move(*inner), {place.root, path}, depth + 1));
  }
  return {};
}

}  // namespace

Result<void> copy_pack_files(int from, int root) {
  ATOLL_TRY(Fd directory, open_at(from, ".", O_RDONLY | O_DIRECTORY));
  return copy_directory(std::move(directory), {root, ""}, 0);
}

}  // namespace atl::builder
