#include "cli/local_tree.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"

namespace atl::cli {
namespace {

Error denied(std::string_view name) {
  return Error(Code::kDenied, "\"" + std::string(name) + "\" leads out of its directory");
}

Result<Fd> open_beneath(int directory, const std::string& name, uint64_t flags, uint64_t mode) {
  open_how how{.flags = flags | O_CLOEXEC,
               .mode = mode,
               .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
  long fd = syscall(SYS_openat2, directory, name.c_str(), &how, sizeof how);
  if (fd < 0) return Error::system("open " + name);
  return Fd(static_cast<int>(fd));
}

Result<Fd> enter(int directory, const std::string& name) {
  if (mkdirat(directory, name.c_str(), 0777) != 0 && errno != EEXIST)
    return Error::system("make directory " + name);
  return open_beneath(directory, name, O_RDONLY | O_DIRECTORY, 0);
}

}  // namespace

Result<std::string> plain_name(std::string_view name) {
  std::string plain;
  if (name.starts_with('/') || name.find('\0') != name.npos) return denied(name);
  std::string_view left = name;
  while (!left.empty()) {
    std::string_view part = left.substr(0, left.find('/'));
    left.remove_prefix(std::min(left.size(), part.size() + 1));
    if (part == "..") return denied(name);
    if (part.empty() || part == ".") continue;
    if (!plain.empty()) plain += '/';
    plain += part;
  }
  return plain;
}

Result<LocalTree> LocalTree::open(const std::string& directory) {
  if (mkdir(directory.c_str(), 0777) != 0 && errno != EEXIST)
    return Error::system("make directory " + directory);
  ATOLL_TRY(Fd root, open_file(directory, O_RDONLY | O_DIRECTORY));
  return LocalTree(std::move(root));
}

Result<LocalTree::Place> LocalTree::parent_of(std::string_view name) {
  ATOLL_TRY(std::string left, plain_name(name));
  if (left.empty()) return denied(name);
  Place place;
  ATOLL_TRY(place.directory, open_beneath(root_.get(), ".", O_RDONLY | O_DIRECTORY, 0));
  for (size_t slash = left.find('/'); slash != left.npos; slash = left.find('/')) {
    ATOLL_TRY(place.directory, enter(place.directory.get(), left.substr(0, slash)));
    left.erase(0, slash + 1);
  }
  place.name = left;
  return place;
}

Result<Fd> LocalTree::create_file(std::string_view name, unsigned mode) {
  ATOLL_TRY(Place place, parent_of(name));
  // What is there may be a link: it goes, not what it points to.
  if (unlinkat(place.directory.get(), place.name.c_str(), 0) != 0 && errno != ENOENT)
    return Error::system("replace " + std::string(name));
  return open_beneath(place.directory.get(), place.name, O_WRONLY | O_CREAT | O_EXCL, mode & 0777);
}

Result<void> LocalTree::make_directory(std::string_view name) {
  ATOLL_TRY(std::string plain, plain_name(name));
  if (plain.empty()) return {};
  ATOLL_TRY(Place place, parent_of(plain));
  ATOLL_TRY_VOID(enter(place.directory.get(), place.name));
  return {};
}

Result<void> LocalTree::make_link(std::string_view name, const std::string& target) {
  ATOLL_TRY_VOID(plain_name(target));
  ATOLL_TRY(Place place, parent_of(name));
  if (unlinkat(place.directory.get(), place.name.c_str(), 0) != 0 && errno != ENOENT)
    return Error::system("replace " + std::string(name));
  if (symlinkat(target.c_str(), place.directory.get(), place.name.c_str()) != 0)
    return Error::system("link " + std::string(name));
  return {};
}

}  // namespace atl::cli
