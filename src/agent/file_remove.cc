#include "agent/file_remove.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "agent/directory_reader.h"
#include "agent/file_draft.h"
#include "agent/file_path.h"
#include "agent/file_wire.h"

namespace atl::agent {
namespace {

// Directories that are looked up in one reading of their parent.
constexpr size_t kBatch = 64;
constexpr int kMaxReadings = 1'000'000;  // of one directory, into which programs put more and more

// Every call in a deep directory costs a walk of Landlock up to the root, so what is deeper than
// this is first moved to the top.
constexpr size_t kMaxLevels = 32;

// Descends by openat and comes back by "..", so no path is ever too long; where ".." leads
// elsewhere, because a program has moved the directory, the removal stops.
class TreeRemoval {
 public:
  explicit TreeRemoval(int root) : root_(root) {}

  // Empties the root.
  Result<void> run();

 private:
  struct Level {
    struct stat self;
    std::vector<std::string> directories;  // beneath, not yet removed
    int readings = 0;
  };

  // Removes what is not a directory, and remembers some that are.
  Result<void> read_level(Level& level);
  Result<void> descend();
  Result<void> ascend();
  bool move_to_top(const std::string& name);

  int root_;
  int moved_ = 0;
  Fd current_;
  std::vector<Level> levels_;
};

Result<struct stat> identity_of(int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0) return file_error("stat");
  return status;
}

Result<void> TreeRemoval::run() {
  current_ = Fd(fcntl(root_, F_DUPFD_CLOEXEC, 0));
  if (!current_) return file_error("dup");
  ATOLL_TRY(struct stat self, identity_of(current_.get()));
  levels_.push_back({self, {}});
  while (true) {
    Level& level = levels_.back();
    if (level.directories.empty()) ATOLL_TRY_VOID(read_level(level));
    if (!level.directories.empty())
      ATOLL_TRY_VOID(descend());
    else if (levels_.size() == 1)
      return {};
    else
      ATOLL_TRY_VOID(ascend());
  }
}

Result<void> TreeRemoval::read_level(Level& level) {
  if (++level.readings > kMaxReadings) return file_error(EBUSY, "remove");
  ATOLL_TRY(DirectoryReader reader, DirectoryReader::open(current_.get()));
  while (const dirent* entry = reader.next()) {
    const char* name = entry->d_name;
    if (unlinkat(current_.get(), name, 0) == 0 || errno == ENOENT) continue;
    // EPERM is what POSIX says of a directory.
    if (errno != EISDIR && errno != EPERM) return file_error("unlink", name);
    int failure = errno;
    if (unlinkat(current_.get(), name, AT_REMOVEDIR) == 0 || errno == ENOENT) continue;
    if (errno == ENOTDIR) return file_error(failure, "unlink", name);
    if (errno != ENOTEMPTY && errno != EEXIST) return file_error("rmdir", name);
    level.directories.push_back(name);
    if (level.directories.size() == kBatch) return {};
  }
  return {};
}

// Not possible for a directory of another's or of a lower layer: then it is emptied where it is.
bool TreeRemoval::move_to_top(const std::string& name) {
  std::string hidden = hidden_name(name, moved_++);
  return renameat2(current_.get(), name.c_str(), root_, hidden.c_str(), RENAME_NOREPLACE) == 0;
}

Result<void> TreeRemoval::descend() {
  const std::string& name = levels_.back().directories.back();
  if (levels_.size() > kMaxLevels && move_to_top(name)) {
    levels_.back().directories.pop_back();
    return {};
  }
  Fd next = open_beneath(current_.get(), name, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
  if (!next) {
    bool vanished = errno == ENOENT || errno == ENOTDIR || errno == ELOOP;
    if (!vanished) return file_error("open", name);
    levels_.back().directories.pop_back();
    return {};
  }
  ATOLL_TRY(struct stat self, identity_of(next.get()));
  current_ = std::move(next);
  levels_.push_back({self, {}});
  return {};
}

Result<void> TreeRemoval::ascend() {
  levels_.pop_back();
  Level& parent = levels_.back();
  Fd above(openat(current_.get(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!above) return file_error("open");
  ATOLL_TRY(struct stat found, identity_of(above.get()));
  if (found.st_dev != parent.self.st_dev || found.st_ino != parent.self.st_ino)
    return file_error(EBUSY, "remove", parent.directories.back());
  current_ = std::move(above);
  const std::string& name = parent.directories.back();
  bool removed = unlinkat(current_.get(), name.c_str(), AT_REMOVEDIR) == 0;
  // Filled again meanwhile: the next reading finds it.
  bool harmless = errno == ENOENT || errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR;
  if (!removed && !harmless) return file_error("rmdir", name);
  parent.directories.pop_back();
  return {};
}

enum class Depth : uint8_t { kOne, kTree };

Result<void> remove_name(int directory, const std::string& text, Depth depth) {
  const char* name = text.c_str();
  if (unlinkat(directory, name, 0) == 0) return {};
  if (errno != EISDIR && errno != EPERM) return file_error("unlink");
  int failure = errno;
  if (unlinkat(directory, name, AT_REMOVEDIR) == 0) return {};
  if (errno == ENOTDIR) return file_error(failure, "unlink");
  bool full = errno == ENOTEMPTY || errno == EEXIST;
  if (!full || depth == Depth::kOne) return file_error("rmdir");
  Fd root = open_beneath(directory, text, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
  if (!root) return file_error("open");
  ATOLL_TRY_VOID(TreeRemoval(root.get()).run());
  if (unlinkat(directory, name, AT_REMOVEDIR) != 0) return file_error("rmdir");
  return {};
}

}  // namespace

Result<void> remove_file(const FileRequest& request) {
  ATOLL_TRY(Place place, find_place(request.path));
  bool whole = (request.flags & bit(FileFlag::kRecursive)) != 0;
  return remove_name(place.directory.get(), place.name, whole ? Depth::kTree : Depth::kOne);
}

Result<void> remove_whole(int directory, const std::string& name) {
  return remove_name(directory, name, Depth::kTree);
}

}  // namespace atl::agent
