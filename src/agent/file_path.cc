#include "agent/file_path.h"

#include <sys/stat.h>
#include <unistd.h>

#include "agent/file_wire.h"
#include "linux/open_resolved.h"

namespace atl::agent {
namespace {

constexpr unsigned kDirectoryMode = 0755;

struct Parts {
  std::string_view parent;  // "/" or without a slash at its end
  std::string_view name;
};

Parts split(std::string_view path) {
  path = trimmed(path);
  if (path == "/") return {"/", "."};
  size_t slash = path.rfind('/');
  return {trimmed(path.substr(0, slash + 1)), path.substr(slash + 1)};
}

}  // namespace

std::string_view trimmed(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

std::string_view last_part(std::string_view path) { return split(path).name; }

std::string join_path(std::string_view directory, std::string_view name) {
  std::string path(directory);
  if (!path.empty() && !path.ends_with('/')) path += '/';
  path += name;
  return path;
}

Fd open_any(int directory, const std::string& path, int flags) {
  return linux::open_resolved(directory, path, {.flags = flags, .resolve = RESOLVE_NO_MAGICLINKS});
}

Fd open_beneath(int directory, const std::string& path, int flags) {
  return linux::open_resolved(
      directory, path,
      {.flags = flags, .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS});
}

Result<Place> find_place(std::string_view path) {
  Parts parts = split(path);
  Fd directory = open_any(AT_FDCWD, std::string(parts.parent), O_PATH | O_DIRECTORY);
  if (!directory) return file_error("open", parts.parent);
  return Place{std::move(directory), std::string(parts.name), std::string(trimmed(path))};
}

std::string descriptor_path(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

MissingDirectories::MissingDirectories(MissingDirectories&& other) noexcept
    : nearest_(std::move(other.nearest_)),
      missing_(std::move(other.missing_)),
      made_(std::exchange(other.made_, {})),
      first_made_(other.first_made_) {}

MissingDirectories::~MissingDirectories() {
  // One that holds something meanwhile stays.
  while (made_.size() > first_made_) {
    unlinkat(nearest_.get(), made_.c_str(), AT_REMOVEDIR);
    size_t slash = made_.rfind('/');
    if (slash == made_.npos) break;
    made_.resize(slash);
  }
}

Result<MissingDirectories> MissingDirectories::create(std::string_view path) {
  MissingDirectories directories;
  std::string_view parent = split(path).parent, found = parent;
  while (true) {
    directories.nearest_ = open_any(AT_FDCWD, std::string(found), O_PATH | O_DIRECTORY);
    if (directories.nearest_) break;
    if (errno != ENOENT || found == "/") return file_error("open", found);
    found = split(found).parent;
  }
  std::string_view missing = parent.substr(found.size());
  while (missing.starts_with('/')) missing.remove_prefix(1);
  directories.missing_ = missing;
  return directories;
}

Result<Fd> MissingDirectories::make() {
  Fd directory(fcntl(nearest_.get(), F_DUPFD_CLOEXEC, 0));
  if (!directory) return file_error("dup");
  for (size_t begin = 0; begin < missing_.size();) {
    size_t end = std::min(missing_.find('/', begin), missing_.size());
    std::string name = missing_.substr(begin, end - begin);
    begin = end + 1;
    if (name.empty()) continue;
    if (mkdirat(directory.get(), name.c_str(), kDirectoryMode) == 0) {
      if (made_.empty()) first_made_ = end - name.size();
      made_ = missing_.substr(0, end);
    } else if (errno != EEXIST) {
      return file_error("mkdir", missing_.substr(0, end));
    }
    directory = open_any(directory.get(), name, O_PATH | O_DIRECTORY);
    if (!directory) return file_error("open", missing_.substr(0, end));
  }
  return directory;
}

}  // namespace atl::agent
