#include "agent/file_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "agent/file_entry.h"
#include "agent/file_path.h"
#include "agent/file_walk.h"

namespace atl::agent {
namespace {

constexpr size_t kMaxWatches = 8192;
constexpr uint32_t kEvents = IN_CREATE | IN_CLOSE_WRITE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                             IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_EXCL_UNLINK;
constexpr int kMovePauseMs = 20;  // the second half of a move may be in the next reading

class Watching {
 public:
  Watching(const FileRequest& request, FileWire& wire)
      : base_(trimmed(request.path)),
        recursive_((request.flags & bit(FileFlag::kRecursive)) != 0),
        wire_(wire) {}

  Result<void> begin();
  // False: what was watched is gone.
  Result<bool> step();

 private:
  enum class Tell : uint8_t { kNothing, kEntries, kUnwatched };

  // True: it was not watched before, and is now.
  Result<bool> watch(int fd, const std::string& path);
  // The directories beneath; a new one may hold something already. kUnwatched: only what is in
  // directories that were not watched so far.
  Result<void> watch_beneath(const std::string& path, Tell tell);
  Result<void> watch_tree(const std::string& path);
  Result<void> take(const inotify_event& event);
  Result<void> take_named(const inotify_event& event, const std::string& path);
  Result<void> take_move(const inotify_event& event, const std::string& path);
  Result<void> arrived(EntryType type, const std::string& path);
  Result<void> left();
  void forget_beneath(const std::string& path);
  void rename_beneath(const std::string& from, const std::string& to);
  Result<void> tell(ChangeKind kind, EntryType type, const std::string& path,
                    const std::string& target = {});

  struct Departure {
    uint32_t cookie;
    EntryType type;
    std::string path;
  };

  std::string base_;
  bool recursive_;
  FileWire& wire_;
  Fd inotify_;
  int root_watch_ = -1;
  bool gone_ = false;
  bool overflow_told_ = false;
  std::map<int, std::string> paths_;  // of each watch, absolute
  std::optional<Departure> departure_;
};

Result<void> Watching::begin() {
  inotify_ = Fd(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!inotify_) return file_error("inotify");
  Fd root = open_any(AT_FDCWD, base_, O_PATH);
  if (!root) return file_error("open");
  ATOLL_TRY_VOID(watch(root.get(), base_));
  if (paths_.empty()) return file_error(ENOSPC, "watch");
  root_watch_ = paths_.begin()->first;
  struct stat status;
  if (fstat(root.get(), &status) != 0) return file_error("stat");
  if (recursive_ && S_ISDIR(status.st_mode)) ATOLL_TRY_VOID(watch_beneath(base_, Tell::kNothing));
  ATOLL_TRY_VOID(wire_.send(encode_record(RecordType::kReady)));
  return wire_.flush();
}

Result<bool> Watching::watch(int fd, const std::string& path) {
  std::string self = descriptor_path(fd);
  bool full = paths_.size() >= kMaxWatches;
  int number = full ? -1 : inotify_add_watch(inotify_.get(), self.c_str(), kEvents);
  if (number >= 0) return paths_.insert_or_assign(number, path).second;
  if (!full && (errno == EACCES || errno == ENOENT) && path != base_) return false;
  // What is beneath goes unnoticed from now on; once is enough to know.
  if (!full && errno != ENOSPC && errno != ENOMEM) return file_error("watch", path);
  if (std::exchange(overflow_told_, true)) return false;
  ATOLL_TRY_VOID(tell(ChangeKind::kOverflow, EntryType::kDirectory, path));
  return false;
}

Result<void> Watching::watch_beneath(const std::string& path, Tell told) {
  Fd root = open_any(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_NOFOLLOW);
  if (!root && path == base_) root = open_any(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
  if (!root) return {};  // gone again, or not for this user
  FileWalk walk(std::move(root), {});
  std::set<std::string, std::less<>> unwatched;
  while (true) {
    ATOLL_TRY(auto walked, walk.next());
    if (!walked) return {};
    std::string full = join_path(path, walked->path);
    Fd entry = open_beneath(walked->directory, walked->name, O_PATH | O_NOFOLLOW);
    struct stat status;
    if (!entry || fstat(entry.get(), &status) != 0 || full.size() > kMaxPathBytes) continue;
    // Watched before the walk reads it: what comes later is an event.
    bool is_new = false;
    if (S_ISDIR(status.st_mode)) {
      ATOLL_TRY(is_new, watch(entry.get(), full));
    }
    if (is_new && told == Tell::kUnwatched) unwatched.insert(full);
    bool is_in_new = unwatched.contains(std::string_view(full).substr(0, full.rfind('/')));
    if (told == Tell::kEntries || is_in_new || unwatched.contains(full))
      ATOLL_TRY_VOID(tell(ChangeKind::kCreated, entry_type(status.st_mode), full));
  }
}

Result<bool> Watching::step() {
  pollfd polls[] = {{inotify_.get(), POLLIN, 0}, {wire_.socket(), POLLIN, 0}};
  int count = poll(polls, 2, departure_ ? kMovePauseMs : -1);
  if (count < 0 && errno != EINTR) return file_error("poll");
  // Nothing is to come that way but its end.
  if (polls[1].revents != 0) return file_error(ECANCELED, "watch");
  if (count == 0) ATOLL_TRY_VOID(left());
  alignas(inotify_event) char bytes[64 * 1024];
  ssize_t length = read(inotify_.get(), bytes, sizeof bytes);
  if (length < 0 && errno != EAGAIN && errno != EINTR) return file_error("read inotify");
  for (ssize_t at = 0; at < length;) {
    inotify_event event;
    std::memcpy(&event, bytes + at, sizeof event);
    ATOLL_TRY_VOID(take(*reinterpret_cast<inotify_event*>(bytes + at)));
    at += static_cast<ssize_t>(sizeof event + event.len);
  }
  if (gone_) ATOLL_TRY_VOID(left());
  ATOLL_TRY_VOID(wire_.flush());
  return !gone_;
}

Result<void> Watching::take(const inotify_event& event) {
  if ((event.mask & IN_Q_OVERFLOW) != 0)
    return tell(ChangeKind::kOverflow, EntryType::kDirectory, base_);
  auto found = paths_.find(event.wd);
  if (found == paths_.end()) return {};
  std::string path = found->second;
  if ((event.mask & IN_IGNORED) != 0) {
    paths_.erase(found);
    return {};
  }
  bool is_root = event.wd == root_watch_;
  if ((event.mask & (IN_DELETE_SELF | IN_MOVE_SELF)) != 0) {
    if (!is_root || gone_) return {};
    gone_ = true;
    return tell(ChangeKind::kRemoved, EntryType::kOther, path);
  }
  if (event.len > 0) return take_named(event, join_path(path, event.name));
  // Of a directory itself its parent tells the same.
  if (!is_root) return {};
  if ((event.mask & IN_ATTRIB) != 0) return tell(ChangeKind::kAttributes, EntryType::kOther, path);
  if ((event.mask & IN_CLOSE_WRITE) != 0) return tell(ChangeKind::kWritten, EntryType::kFile, path);
  return {};
}

Result<void> Watching::take_named(const inotify_event& event, const std::string& path) {
  if (path.size() > kMaxPathBytes) return {};
  if ((event.mask & (IN_MOVED_FROM | IN_MOVED_TO)) != 0) return take_move(event, path);
  ATOLL_TRY_VOID(left());
  EntryType type = (event.mask & IN_ISDIR) != 0 ? EntryType::kDirectory : EntryType::kFile;
  if ((event.mask & IN_CREATE) != 0) return arrived(type, path);
  if ((event.mask & IN_DELETE) != 0) return tell(ChangeKind::kRemoved, type, path);
  if ((event.mask & IN_CLOSE_WRITE) != 0) return tell(ChangeKind::kWritten, type, path);
  if ((event.mask & IN_ATTRIB) != 0) return tell(ChangeKind::kAttributes, type, path);
  return {};
}

Result<void> Watching::take_move(const inotify_event& event, const std::string& path) {
  EntryType type = (event.mask & IN_ISDIR) != 0 ? EntryType::kDirectory : EntryType::kFile;
  if ((event.mask & IN_MOVED_FROM) != 0) {
    ATOLL_TRY_VOID(left());
    departure_ = Departure{event.cookie, type, path};
    return {};
  }
  if (!departure_ || departure_->cookie != event.cookie) {
    ATOLL_TRY_VOID(left());
    return arrived(type, path);
  }
  std::string from = departure_->path;
  departure_.reset();
  rename_beneath(from, path);
  ATOLL_TRY_VOID(tell(ChangeKind::kMoved, type, from, path));
  // It may have gone before it could be watched under its old name.
  return type == EntryType::kDirectory ? watch_tree(path) : Result<void>();
}

Result<void> Watching::arrived(EntryType type, const std::string& path) {
  ATOLL_TRY_VOID(tell(ChangeKind::kCreated, type, path));
  return type == EntryType::kDirectory ? watch_tree(path) : Result<void>();
}

Result<void> Watching::watch_tree(const std::string& path) {
  if (!recursive_) return {};
  Fd directory = open_any(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (!directory) return {};  // gone again
  ATOLL_TRY(bool is_new, watch(directory.get(), path));
  return watch_beneath(path, is_new ? Tell::kEntries : Tell::kUnwatched);
}

// Where it went is not watched: for us it is removed.
Result<void> Watching::left() {
  if (!departure_) return {};
  Departure departure = std::move(*departure_);
  departure_.reset();
  forget_beneath(departure.path);
  return tell(ChangeKind::kRemoved, departure.type, departure.path);
}

void Watching::forget_beneath(const std::string& path) {
  std::string prefix = path + "/";
  for (auto entry = paths_.begin(); entry != paths_.end();) {
    bool beneath = entry->second == path || entry->second.starts_with(prefix);
    if (beneath) inotify_rm_watch(inotify_.get(), entry->first);
    entry = beneath ? paths_.erase(entry) : std::next(entry);
  }
}

void Watching::rename_beneath(const std::string& from, const std::string& to) {
  std::string prefix = from + "/";
  for (auto& [number, path] : paths_)
    if (path == from || path.starts_with(prefix)) path = to + path.substr(from.size());
}

Result<void> Watching::tell(ChangeKind kind, EntryType type, const std::string& path,
                            const std::string& target) {
  // Moving a directory can make paths too long to be told.
  if (path.size() > kMaxPathBytes || target.size() > kMaxPathBytes) return {};
  return wire_.send(encode_record(FileChange{kind, type, path, target}));
}

}  // namespace

Result<void> watch_files(const FileRequest& request, FileWire& wire) {
  Watching watching(request, wire);
  ATOLL_TRY_VOID(watching.begin());
  bool there = true;
  while (there) {
    ATOLL_TRY(there, watching.step());
  }
  return {};
}

}  // namespace atl::agent
