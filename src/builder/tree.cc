#include "builder/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "builder/jail.h"
#include "linux/open_resolved.h"

namespace atl::builder {
namespace {

constexpr std::string_view kWhiteout = ".wh.";
constexpr std::string_view kOpaque = ".wh..wh..opq";
// mkfs gives later ones this time; see image_stage.cc.
constexpr int64_t kLatestTime = 2'000'000'000;
constexpr int64_t kNewTime = 1'700'000'000;
constexpr size_t kMaxRemovedDepth = 1024;
constexpr uint64_t kSpaceCheckBytes = 64ull << 20;

Error refuse(const std::string& path, std::string_view why) {
  return Error(Code::kInvalid, path + ": " + std::string(why));
}

Fd open_inside(int root, const std::string& path, int flags) {
  return linux::open_resolved(
      root, path.empty() ? "." : path,
      {.flags = flags, .mode = 0, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS});
}

std::string join(const std::vector<std::string>& parts, size_t count) {
  std::string path;
  for (size_t i = 0; i < count; ++i) path += (i == 0 ? "" : "/") + parts[i];
  return path;
}

timespec time_of(int64_t seconds) { return {std::clamp<int64_t>(seconds, 0, kLatestTime), 0}; }

Result<void> set_time(int directory, const std::string& name, int64_t modified) {
  timespec times[2] = {time_of(modified), time_of(modified)};
  if (utimensat(directory, name.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0)
    return Error::system("set the time of " + name);
  return {};
}

Result<void> check_space(int fd) {
  struct statvfs facts;
  if (fstatvfs(fd, &facts) != 0) return Error::system("statvfs");
  if (facts.f_bavail * facts.f_frsize < kFreeSpaceFloorBytes)
    return Error(Code::kExhausted, "less than 1 GiB is free on this host's disk");
  return {};
}

Result<void> settle_new_times(int directory, int64_t since, size_t depth) {
  if (depth > kMaxRemovedDepth) return Error(Code::kInvalid, "the tree is too deep");
  ATOLL_TRY(Fd listed, open_at(directory, ".", O_RDONLY | O_DIRECTORY));
  std::unique_ptr<DIR, int (*)(DIR*)> entries(fdopendir(listed.release()), closedir);
  if (!entries) return Error::system("read a directory");
  while (const dirent* entry = readdir(entries.get())) {
    std::string name = entry->d_name;
    struct stat facts;
    if (name == "..") continue;
    if (fstatat(directory, entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0)
      return Error::system("stat " + name);
    if (facts.st_mtim.tv_sec >= since) ATOLL_TRY_VOID(set_time(directory, name, kNewTime));
    if (!S_ISDIR(facts.st_mode) || name == ".") continue;
    ATOLL_TRY(Fd inner, open_at(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    ATOLL_TRY_VOID(settle_new_times(inner.get(), since, depth + 1));
  }
  return {};
}

Result<void> empty_at_depth(int directory, size_t depth);

Result<void> remove_at_depth(int directory, const std::string& name, size_t depth) {
  if (unlinkat(directory, name.c_str(), 0) == 0 || errno == ENOENT) return {};
  if (errno != EISDIR && errno != EPERM) return Error::system("remove " + name);
  if (depth > kMaxRemovedDepth) return refuse(name, "is too deep");
  ATOLL_TRY(Fd inner, open_at(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  ATOLL_TRY_VOID(empty_at_depth(inner.get(), depth));
  if (unlinkat(directory, name.c_str(), AT_REMOVEDIR) != 0) return Error::system("remove " + name);
  return {};
}

Result<void> empty_at_depth(int directory, size_t depth) {
  ATOLL_TRY(Fd listed, open_at(directory, ".", O_RDONLY | O_DIRECTORY));
  std::unique_ptr<DIR, int (*)(DIR*)> entries(fdopendir(listed.release()), closedir);
  if (!entries) return Error::system("read a directory");
  while (const dirent* entry = readdir(entries.get())) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") ATOLL_TRY_VOID(remove_at_depth(directory, name, depth + 1));
  }
  return {};
}

}  // namespace

Result<void> remove_at(int directory, const std::string& name) {
  return remove_at_depth(directory, name, 0);
}

Result<void> empty_directory(int directory) { return empty_at_depth(directory, 0); }

Result<std::vector<std::string>> split_path(std::string_view path) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= path.size();) {
    size_t end = std::min(path.find('/', begin), path.size());
    std::string_view part = path.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty() || part == ".") continue;
    if (part == "..") return refuse(std::string(path), "has a \"..\" in it");
    if (part.size() > NAME_MAX) return refuse(std::string(path), "has a part over 255 bytes");
    parts.emplace_back(part);
    if (parts.size() > kMaxDepth) return refuse(std::string(path), "is deeper than 128");
  }
  return parts;
}

Result<Tree> Tree::open(const std::string& path) {
  ATOLL_TRY_VOID(make_directory(path, 0755));
  ATOLL_TRY(Fd root, open_file(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  return Tree(std::move(root), time(nullptr));
}

Result<int> Tree::parent_of(const std::vector<std::string>& parts, Missing missing) {
  std::string path = join(parts, parts.size() - 1);
  if (parent_ && path == parent_path_) return parent_.get();
  Fd found = open_inside(root_.get(), path, O_RDONLY | O_DIRECTORY);
  if (!found && errno == ENOENT && missing == Missing::kMake) {
    for (size_t i = 1; i < parts.size(); ++i) {
      Fd above = open_inside(root_.get(), join(parts, i - 1), O_RDONLY | O_DIRECTORY);
      if (!above) return Error::system(path);
      if (mkdirat(above.get(), parts[i - 1].c_str(), 0755) != 0 && errno != EEXIST)
        return Error::system("mkdir " + path);
    }
    found = open_inside(root_.get(), path, O_RDONLY | O_DIRECTORY);
  }
  if (!found && missing == Missing::kMake)
    return refuse(path, "is not a directory, and entries of the archive are beneath it");
  if (!found) return -1;
  parent_ = std::move(found);
  parent_path_ = std::move(path);
  return parent_.get();
}

Result<void> Tree::apply_whiteouts(ArchiveFile& layer) {
  while (true) {
    ATOLL_TRY(std::optional<ArchiveEntry> entry, layer.next());
    if (!entry) break;
    ATOLL_TRY(std::vector<std::string> parts, split_path(entry->path));
    if (parts.empty() || !parts.back().starts_with(kWhiteout)) continue;
    ATOLL_TRY(int parent, parent_of(parts, Missing::kFail));
    if (parent < 0) continue;
    if (parts.back() == kOpaque) {
      ATOLL_TRY_VOID(empty_directory(parent));
    } else {
      std::string hidden = parts.back().substr(kWhiteout.size());
      if (hidden.empty() || hidden == "." || hidden == "..")
        return refuse(entry->path, "hides nothing that has a name");
      ATOLL_TRY_VOID(remove_at(parent, hidden));
    }
    parent_.reset();  // it may have been removed
  }
  return {};
}

Result<void> Tree::add(ArchiveFile& archive, Kind kind, const Place& place) {
  while (true) {
    ATOLL_TRY(std::optional<ArchiveEntry> entry, archive.next());
    if (!entry) return {};
    if (place && !place(*entry)) continue;
    ATOLL_TRY(std::vector<std::string> parts, split_path(entry->path));
    if (parts.empty() || (kind == Kind::kLayer && parts.back().starts_with(kWhiteout))) continue;
    auto added = add_entry(archive, *entry, parts);
    if (!added) return std::move(added).error().with_context(entry->path);
  }
}

Result<void> Tree::add_entry(ArchiveFile& archive, const ArchiveEntry& entry,
                             const std::vector<std::string>& parts) {
  using Type = ArchiveEntry::Type;
  if (entry.type == Type::kOther) {
    ++left_out_;
    return {};
  }
  if (entry.uid < 0 || entry.uid >= kIds || entry.gid < 0 || entry.gid >= kIds)
    return Error(Code::kInvalid, "has an owner beyond 65535");
  ATOLL_TRY(int parent, parent_of(parts, Missing::kMake));
  const std::string& name = parts.back();
  if (entry.type == Type::kDirectory) {
    ATOLL_TRY_VOID(add_directory(entry, parent, name));
    directory_times_.push_back({join(parts, parts.size()), entry.modified});
    return {};
  }
  if (entry.type == Type::kHardLink) return add_link(entry, parent, name);
  if (entry.type == Type::kFile) return add_file(archive, entry, parent, name);
  if (entry.target.empty()) return Error(Code::kInvalid, "is a link to nothing");
  ATOLL_TRY_VOID(remove_at(parent, name));
  if (symlinkat(entry.target.c_str(), parent, name.c_str()) != 0) return Error::system("symlink");
  ATOLL_TRY_VOID(set_owner(entry, parent, name));
  return set_time(parent, name, entry.modified);
}

Result<void> Tree::set_owner(const ArchiveEntry& entry, int parent, const std::string& name) {
  if (fchownat(parent, name.c_str(), static_cast<uid_t>(entry.uid), static_cast<gid_t>(entry.gid),
               AT_SYMLINK_NOFOLLOW) != 0)
    return Error::system("chown");
  return {};
}

Result<void> Tree::add_directory(const ArchiveEntry& entry, int parent, const std::string& name) {
  struct stat facts;
  bool exists = fstatat(parent, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0;
  if (exists && !S_ISDIR(facts.st_mode)) ATOLL_TRY_VOID(remove_at(parent, name));
  if (mkdirat(parent, name.c_str(), 0755) != 0 && errno != EEXIST) return Error::system("mkdir");
  ATOLL_TRY_VOID(set_owner(entry, parent, name));
  // Not a link: it was just made or found to be a directory, and nobody else is here.
  if (fchmodat(parent, name.c_str(), entry.mode & 03777, 0) != 0) return Error::system("chmod");
  return {};
}

Result<void> Tree::add_file(ArchiveFile& archive, const ArchiveEntry& entry, int parent,
                            const std::string& name) {
  ATOLL_TRY_VOID(remove_at(parent, name));
  ATOLL_TRY(Fd file, open_at(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  if (ftruncate(file.get(), static_cast<off_t>(entry.size)) != 0) return Error::system("truncate");
  uint64_t unchecked = kSpaceCheckBytes;
  auto take = [&](std::string_view bytes, uint64_t offset) -> Result<void> {
    unchecked += bytes.size();
    if (unchecked >= kSpaceCheckBytes) {
      unchecked = 0;
      ATOLL_TRY_VOID(check_space(file.get()));
    }
    while (!bytes.empty()) {
      ssize_t count = pwrite(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return Error::system("write");
      bytes.remove_prefix(static_cast<size_t>(count));
      offset += static_cast<uint64_t>(count);
    }
    return {};
  };
  ATOLL_TRY_VOID(archive.read(take));
  if (fchown(file.get(), static_cast<uid_t>(entry.uid), static_cast<gid_t>(entry.gid)) != 0)
    return Error::system("chown");
  if (fchmod(file.get(), entry.mode & 01777) != 0) return Error::system("chmod");
  timespec times[2] = {time_of(entry.modified), time_of(entry.modified)};
  if (futimens(file.get(), times) != 0) return Error::system("set the time");
  return {};
}

Result<void> Tree::add_link(const ArchiveEntry& entry, int parent, const std::string& name) {
  ATOLL_TRY(std::vector<std::string> target, split_path(entry.target));
  if (target.empty()) return Error(Code::kInvalid, "is a link to nothing");
  Fd target_parent =
      open_inside(root_.get(), join(target, target.size() - 1), O_RDONLY | O_DIRECTORY);
  struct stat facts, own;
  if (!target_parent ||
      fstatat(target_parent.get(), target.back().c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0)
    return Error(Code::kInvalid, "is a link to " + entry.target + ", which is not there");
  if (!S_ISREG(facts.st_mode) && !S_ISLNK(facts.st_mode))
    return Error(Code::kInvalid, "is a link to " + entry.target + ", which is not a file");
  bool same =
      fstatat(parent, name.c_str(), &own, AT_SYMLINK_NOFOLLOW) == 0 && own.st_ino == facts.st_ino;
  if (same) return {};
  ATOLL_TRY_VOID(remove_at(parent, name));
  if (linkat(target_parent.get(), target.back().c_str(), parent, name.c_str(), 0) != 0)
    return Error::system("link");
  return {};
}

Result<void> Tree::settle_times() {
  // The last one of a name counts, and a parent after what is in it.
  for (auto item = directory_times_.begin(); item != directory_times_.end(); ++item) {
    Fd directory = linux::open_resolved(root_.get(), item->path,
                                        {.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
                                         .mode = 0,
                                         .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS});
    if (!directory) continue;  // a later layer took it away
    ATOLL_TRY_VOID(set_time(directory.get(), ".", item->modified));
  }
  directory_times_.clear();
  return settle_new_times(root_.get(), opened_at_, 0);
}

}  // namespace atl::builder
