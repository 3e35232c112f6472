#include "agent/file_entry.h"

#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>

#include "agent/file_path.h"
#include "agent/file_wire.h"

namespace atl::agent {
namespace {

constexpr size_t kMaxNamesBytes = 64 * 1024;  // the kernel's limit
constexpr std::string_view kUserPrefix = "user.";

// Of a symbolic link that `fd` stands for (with an empty name) or that is in the directory.
std::string read_target(int directory, const char* name) {
  char target[kMaxPathBytes + 1];
  ssize_t length = readlinkat(directory, name, target, sizeof target);
  bool whole = length > 0 && static_cast<size_t>(length) <= kMaxPathBytes;
  return whole ? std::string(target, static_cast<size_t>(length)) : std::string();
}

}  // namespace

EntryType entry_type(mode_t mode) {
  if (S_ISREG(mode)) return EntryType::kFile;
  if (S_ISDIR(mode)) return EntryType::kDirectory;
  return S_ISLNK(mode) ? EntryType::kSymlink : EntryType::kOther;
}

FileEntry describe(const struct stat& status, std::string path, Times times) {
  FileEntry entry;
  entry.path = std::move(path);
  entry.type = entry_type(status.st_mode);
  entry.mode = status.st_mode & 07777;
  entry.uid = status.st_uid;
  entry.gid = status.st_gid;
  entry.size = static_cast<uint64_t>(std::max<off_t>(0, status.st_size));
  // Times that programs set can be beyond what nanoseconds reach.
  const timespec& time = times == Times::kOfBytes ? status.st_mtim : status.st_ctim;
  int64_t seconds = std::clamp<int64_t>(time.tv_sec, -9'000'000'000, 9'000'000'000);
  entry.modified_ns = seconds * 1'000'000'000 + time.tv_nsec;
  entry.inode = status.st_ino;
  return entry;
}

Result<FileEntry> read_entry(int directory, const std::string& name, std::string path,
                             Times times) {
  struct stat status;
  if (fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return file_error("stat", path);
  FileEntry entry = describe(status, std::move(path), times);
  if (entry.type == EntryType::kSymlink) entry.target = read_target(directory, name.c_str());
  return entry;
}

Result<FileEntry> read_entry(int fd, std::string path) {
  struct stat status;
  if (fstat(fd, &status) != 0) return file_error("stat", path);
  FileEntry entry = describe(status, std::move(path));
  if (entry.type == EntryType::kSymlink) entry.target = read_target(fd, "");
  return entry;
}

Result<void> read_attributes(int fd, FileEntry& entry) {
  std::string path = descriptor_path(fd);
  std::string names(kMaxNamesBytes, '\0');
  ssize_t length = listxattr(path.c_str(), names.data(), names.size());
  // A file system without attributes.
  if (length < 0 && (errno == EOPNOTSUPP || errno == EPERM)) return {};
  if (length < 0) return file_error("list attributes");
  names.resize(static_cast<size_t>(length));
  for (size_t begin = 0; begin < names.size(); begin = names.find('\0', begin) + 1) {
    if (entry.attributes.size() == kMaxAttributes) break;
    std::string name = names.c_str() + begin;
    if (!name.starts_with(kUserPrefix)) continue;
    char value[kMaxAttributeBytes];
    ssize_t size = getxattr(path.c_str(), name.c_str(), value, sizeof value);
    if (size < 0) continue;  // too large, gone meanwhile, or not for this user
    entry.attributes.push_back({name, std::string(value, static_cast<size_t>(size))});
  }
  return {};
}

Result<void> write_attributes(int fd, const std::vector<FileAttribute>& attributes) {
  std::string path = descriptor_path(fd);
  for (const auto& [name, value] : attributes) {
    if (value && setxattr(path.c_str(), name.c_str(), value->data(), value->size(), 0) != 0)
      return file_error("set attribute", name);
    if (!value && removexattr(path.c_str(), name.c_str()) != 0)
      return file_error("remove attribute", name);
  }
  return {};
}

}  // namespace atl::agent
