#include "agent/file_unpack.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "agent/file_entry.h"
#include "agent/file_path.h"
#include "agent/file_remove.h"

namespace atl::agent {
namespace {

constexpr uint64_t kMaxEntries = 1'000'000;
constexpr uint32_t kKeptModeBits = 0777;
constexpr uint32_t kAllModeBits = 07777;
constexpr uint32_t kParentMode = 0755;
constexpr int kMaxAttempts = 16;

struct TimePair {
  timespec values[2];  // of access, of modification
};

TimePair times_of(int64_t modified_ns) {
  constexpr int64_t kSecond = 1'000'000'000;
  int64_t seconds = modified_ns / kSecond, rest = modified_ns % kSecond;
  if (rest < 0) {
    rest += kSecond;
    --seconds;
  }
  return {{{0, UTIME_OMIT}, {seconds, rest}}};
}

// Makes something under a hidden name and lets it take the place of what is there.
template <typename Make>
Result<void> make_in_place(int directory, const std::string& name, Make make) {
  if (make(name) == 0) return {};
  for (int i = 0; i < kMaxAttempts && errno == EEXIST; ++i) {
    std::string hidden = hidden_name(name, i);
    if (make(hidden) != 0) continue;
    int renamed = renameat(directory, hidden.c_str(), directory, name.c_str());
    int failure = errno;
    // Between two names of one file a rename does nothing.
    unlinkat(directory, hidden.c_str(), 0);
    if (renamed != 0) return file_error(failure, "rename");
    return {};
  }
  return file_error("create");
}

Error about(const Error& error, std::string_view path) {
  return file_error(error.system_errno(), error.message(), path);
}

}  // namespace

std::optional<std::string> plain_path(std::string_view path) {
  if (path.empty() || path.starts_with('/')) return std::nullopt;
  std::string plain;
  while (!path.empty()) {
    std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(part.size() + 1, path.size()));
    if (part == "..") return std::nullopt;
    if (part.empty() || part == ".") continue;
    plain = join_path(plain, part);
  }
  return plain;
}

Result<void> Unpacking::begin(const FileEntry& entry) {
  ATOLL_TRY_VOID(end_file());
  if (++entries_ > kMaxEntries) return file_error(EOVERFLOW, "unpack", entry.path);
  auto path = plain_path(entry.path);
  if (!path) return file_error(EINVAL, "unpack", entry.path);
  if (entry.type == EntryType::kOther) return is_exact() ? take_away(*path) : Result<void>();
  if (path->empty()) {
    // The root itself is there.
    if (entry.type == EntryType::kDirectory) return {};
    return file_error(EINVAL, "unpack", entry.path);
  }
  auto directory = open_parent(*path);
  if (!directory) return about(directory.error(), entry.path);
  std::string name(path->substr(path->rfind('/') + 1));
  if (is_exact()) {
    auto cleared = clear(directory->get(), name, entry.type);
    if (!cleared) return about(cleared.error(), entry.path);
  }
  FileEntry plain = entry;
  plain.path = *path;
  if (entry.type != EntryType::kFile || !entry.hard_link.empty()) {
    auto made = make(plain, directory->get(), name);
    if (!made) return about(made.error(), entry.path);
    return {};
  }
  auto draft = FileDraft::create(directory->get(), name);
  if (!draft) return about(draft.error(), entry.path);
  open_.emplace(OpenFile{std::move(plain), std::move(*directory), std::move(name),
                         std::move(*draft), entry.size});
  return {};
}

Result<void> Unpacking::add(std::string_view bytes) {
  if (bytes.empty()) return {};
  if (!open_ || bytes.size() > open_->missing_bytes) return file_error(EPROTO, "unpack");
  open_->missing_bytes -= bytes.size();
  auto written = open_->draft.append(bytes);
  if (!written) return about(written.error(), open_->entry.path);
  return {};
}

Result<void> Unpacking::end_file() {
  if (!open_) return {};
  OpenFile file = std::move(*open_);
  open_.reset();
  const std::string& path = file.entry.path;
  if (file.missing_bytes != 0) return file_error(EPROTO, "unpack", path);
  auto dressed = dress(file.draft.fd(), file.entry);
  if (!dressed) return about(dressed.error(), path);
  TimePair times = times_of(file.entry.modified_ns);
  if (futimens(file.draft.fd(), times.values) != 0) return file_error("set times", path);
  auto published = file.draft.publish(file.directory.get(), file.name, Existing::kReplace);
  if (!published) return about(published.error(), path);
  struct stat status;
  if (fstat(file.draft.fd(), &status) != 0) return file_error("stat", path);
  inodes_.insert(status.st_ino);
  return {};
}

Result<Fd> Unpacking::open_parent(const std::string& path) {
  size_t slash = path.rfind('/');
  std::string parent = slash == path.npos ? "." : path.substr(0, slash);
  Fd found = open_beneath(root_.get(), parent, O_PATH | O_DIRECTORY);
  if (found) return found;
  if (errno != ENOENT) return file_error("open");
  Fd directory(fcntl(root_.get(), F_DUPFD_CLOEXEC, 0));
  if (!directory) return file_error("dup");
  for (size_t begin = 0; begin < parent.size();) {
    size_t end = std::min(parent.find('/', begin), parent.size());
    std::string name = parent.substr(begin, end - begin);
    begin = end + 1;
    if (mkdirat(directory.get(), name.c_str(), kParentMode) != 0 && errno != EEXIST)
      return file_error("mkdir");
    directory = open_beneath(directory.get(), name, O_PATH | O_DIRECTORY);
    if (!directory) return file_error("open");
  }
  return directory;
}

Result<void> Unpacking::make(const FileEntry& entry, int directory, const std::string& name) {
  if (entry.type == EntryType::kDirectory) return make_directory(entry, directory, name);
  if (entry.type == EntryType::kSymlink) return make_symlink(entry, directory, name);
  return make_hard_link(entry, directory, name);
}

Result<void> Unpacking::make_directory(const FileEntry& entry, int directory,
                                       const std::string& name) {
  // Files can be put into it until the end, whatever its mode will be.
  if (mkdirat(directory, name.c_str(), 0700) != 0 && errno != EEXIST) return file_error("mkdir");
  Fd there = open_beneath(directory, name, O_PATH | O_DIRECTORY);
  if (!there) return file_error("open");
  late_changes_.push_back(entry);
  return {};
}

Result<void> Unpacking::make_symlink(const FileEntry& entry, int directory,
                                     const std::string& name) {
  ATOLL_TRY_VOID(make_in_place(directory, name, [&](const std::string& as) {
    return symlinkat(entry.target.c_str(), directory, as.c_str());
  }));
  int links = AT_SYMLINK_NOFOLLOW;
  if (is_exact() && fchownat(directory, name.c_str(), entry.uid, entry.gid, links) != 0)
    return file_error("chown");
  TimePair times = times_of(entry.modified_ns);
  // Another may have taken its place already; then there is nothing to set.
  (void)utimensat(directory, name.c_str(), times.values, AT_SYMLINK_NOFOLLOW);
  return {};
}

Result<void> Unpacking::make_hard_link(const FileEntry& entry, int directory,
                                       const std::string& name) {
  auto target = plain_path(entry.hard_link);
  if (!target || target->empty()) return file_error(EINVAL, "link");
  Fd file = open_beneath(root_.get(), *target, O_PATH | O_NOFOLLOW);
  struct stat status;
  if (!file || fstat(file.get(), &status) != 0) return file_error("link");
  if (!S_ISREG(status.st_mode) || !inodes_.contains(status.st_ino))
    return file_error(EINVAL, "link");
  std::string self = descriptor_path(file.get());
  return make_in_place(directory, name, [&](const std::string& as) {
    return linkat(AT_FDCWD, self.c_str(), directory, as.c_str(), AT_SYMLINK_FOLLOW);
  });
}

Result<void> Unpacking::finish() {
  ATOLL_TRY_VOID(end_file());
  // The innermost first: a mode may close the way to what is beneath.
  for (auto change = late_changes_.rbegin(); change != late_changes_.rend(); ++change) {
    const FileEntry& entry = *change;
    Fd directory = open_beneath(root_.get(), entry.path, O_PATH | O_DIRECTORY);
    // Removed or replaced by a program meanwhile, or entered twice and closed by now.
    if (!directory) continue;
    std::string self = descriptor_path(directory.get());
    TimePair times = times_of(entry.modified_ns);
    if (utimensat(AT_FDCWD, self.c_str(), times.values, 0) != 0)
      return file_error("set times", entry.path);
    auto dressed = dress(directory.get(), entry);
    if (!dressed) return about(dressed.error(), entry.path);
  }
  return {};
}

Result<void> Unpacking::take_away(const std::string& path) {
  if (path.empty()) return file_error(EINVAL, "remove");
  size_t slash = path.rfind('/');
  std::string parent = slash == path.npos ? "." : path.substr(0, slash);
  Fd directory = open_beneath(root_.get(), parent, O_PATH | O_DIRECTORY);
  // It went with what was above it.
  if (!directory && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)) return {};
  if (!directory) return file_error("open", path);
  auto removed = remove_whole(directory.get(), path.substr(slash + 1));
  if (removed || removed.error().system_errno() == ENOENT) return {};
  return about(removed.error(), path);
}

Result<void> Unpacking::clear(int directory, const std::string& name, EntryType type) {
  struct stat status;
  if (fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT ? Result<void>() : file_error("stat");
  bool fits = S_ISDIR(status.st_mode) == (type == EntryType::kDirectory);
  return fits ? Result<void>() : remove_whole(directory, name);
}

Result<void> Unpacking::dress(int fd, const FileEntry& entry) {
  std::string self = descriptor_path(fd);
  // First: a change of the owner takes bits of the mode away.
  if (is_exact() && chown(self.c_str(), entry.uid, entry.gid) != 0) return file_error("chown");
  uint32_t bits = is_exact() ? kAllModeBits : kKeptModeBits;
  if (chmod(self.c_str(), entry.mode & bits) != 0) return file_error("chmod");
  return is_exact() ? write_attributes(fd, entry.attributes) : Result<void>();
}

namespace {

Result<void> receive_all(FileWire& wire, Unpacking& unpacking) {
  while (true) {
    ATOLL_TRY(FileRecord record, wire.receive());
    if (record.type == RecordType::kDone) return unpacking.finish();
    if (record.type == RecordType::kBytes) {
      ATOLL_TRY_VOID(unpacking.add(record.payload));
      continue;
    }
    if (record.type != RecordType::kEntry) return malformed("record in a");
    ATOLL_TRY(FileEntry entry, decode_entry(record.payload));
    ATOLL_TRY_VOID(unpacking.begin(entry));
  }
}

}  // namespace

Result<void> unpack_tree(const FileRequest& request, FileWire& wire) {
  bool makes_parents = (request.flags & bit(FileFlag::kParents)) != 0;
  ATOLL_TRY(auto parents, MissingDirectories::create(join_path(request.path, "x")));
  if (!makes_parents && parents.missing()) return file_error(ENOENT, "open");
  ATOLL_TRY(Fd root, parents.make());
  parents.keep();
  Unpacking unpacking(std::move(root));
  return receive_all(wire, unpacking);
}

Result<void> restore_tree(const FileRequest& request, FileWire& wire) {
  Fd root = open_any(AT_FDCWD, request.path, O_PATH | O_DIRECTORY);
  if (!root) return file_error("open");
  Unpacking unpacking(std::move(root), Unpacking::Fidelity::kExact);
  return receive_all(wire, unpacking);
}

}  // namespace atl::agent
