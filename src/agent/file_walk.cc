#include "agent/file_walk.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>

#include "agent/directory_reader.h"
#include "agent/file_path.h"
#include "agent/file_wire.h"
#include "agent/protocol.h"

namespace atl::agent {
namespace {

bool is_of_kernel(int directory) {
  struct statfs status;
  if (fstatfs(directory, &status) != 0) return true;
  return status.f_type == PROC_SUPER_MAGIC || status.f_type == SYSFS_MAGIC;
}

bool is_directory(int directory, const char* name, unsigned char type) {
  if (type != DT_UNKNOWN) return type == DT_DIR;
  struct stat status;
  return fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
}

}  // namespace

FileWalk::FileWalk(Fd root, WalkOptions options)
    : root_(std::move(root)), options_(std::move(options)) {
  options_.batch = std::max<size_t>(options_.batch, 2);
  // The first level is read by the first call, which can fail.
  enter("");
}

Result<std::optional<Walked>> FileWalk::next() {
  while (!levels_.empty()) {
    Level& level = levels_.back();
    if (level.next == level.keys.size()) {
      if (!level.more) {
        levels_.pop_back();
        continue;
      }
      ATOLL_TRY_VOID(refill());
      continue;
    }
    const std::string& key = level.keys[level.next++];
    std::string path = join_path(level.path, key);
    if (key.ends_with('/')) {
      path.pop_back();
      enter(std::move(path));
      continue;
    }
    // After a level beneath, its own directory must be opened again.
    ATOLL_TRY(bool there, open_level(level.path));
    if (!there) {
      levels_.pop_back();
      continue;
    }
    return std::optional(Walked{current_.get(), key, std::move(path)});
  }
  return std::optional<Walked>();
}

void FileWalk::enter(std::string path) {
  if (path.size() > kMaxPathBytes) return;
  Level level;
  level.path = std::move(path);
  levels_.push_back(std::move(level));
}

bool FileWalk::is_elsewhere(int directory) const {
  if (options_.file_system == WalkOptions::FileSystem::kAny) return false;
  struct stat root, status;
  if (fstat(root_.get(), &root) != 0 || fstat(directory, &status) != 0) return true;
  return root.st_dev != status.st_dev;
}

Result<bool> FileWalk::open_level(const std::string& path) {
  if (current_ && current_path_ == path) return true;
  if (path.empty()) {
    current_ = Fd(fcntl(root_.get(), F_DUPFD_CLOEXEC, 0));
    current_path_.clear();
    if (!current_) return file_error("dup");
    return true;
  }
  current_ = open_beneath(root_.get(), path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
  current_path_ = path;
  if (!current_) {
    bool refused = errno != ENOENT && errno != ENOTDIR && errno != ELOOP;
    if (refused && options_.unreadable == WalkOptions::Unreadable::kFail)
      return file_error("open", path);
    return false;
  }
  if (!is_of_kernel(current_.get()) && !is_elsewhere(current_.get())) return true;
  current_.reset();
  return false;
}

Result<void> FileWalk::refill() {
  Level& level = levels_.back();
  ATOLL_TRY(bool there, open_level(level.path));
  if (there) return read_batch(level);
  level.keys.clear();
  level.next = 0;
  level.more = false;
  return {};
}

Result<void> FileWalk::read_batch(Level& level) {
  if (!level.keys.empty()) level.last = level.keys.back();
  level.keys.clear();
  level.next = 0;
  level.more = false;
  ATOLL_TRY(DirectoryReader reader, DirectoryReader::open(current_.get()));
  while (const dirent* entry = reader.next()) take_name(level, entry->d_name, entry->d_type);
  std::sort_heap(level.keys.begin(), level.keys.end());
  return {};
}

bool FileWalk::is_wanted(const Level& level, const std::string& key) const {
  if (key <= level.last) return false;
  if (options_.after.empty()) return true;
  std::string path = join_path(level.path, key);
  return path > options_.after || (key.ends_with('/') && options_.after.starts_with(path));
}

void FileWalk::take_name(Level& level, const char* name, unsigned char type) const {
  std::string keys[2] = {name, std::string(name) + '/'};
  bool deeper = options_.depth == 0 || levels_.size() < options_.depth;
  bool both = deeper && is_directory(current_.get(), name, type);
  for (int i = 0; i < (both ? 2 : 1); ++i) {
    if (!is_wanted(level, keys[i])) continue;
    level.keys.push_back(std::move(keys[i]));
    std::push_heap(level.keys.begin(), level.keys.end());
    if (level.keys.size() <= options_.batch) continue;
    std::pop_heap(level.keys.begin(), level.keys.end());
    level.keys.pop_back();
    level.more = true;
  }
}

}  // namespace atl::agent
