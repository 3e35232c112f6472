#include "cli/selftest/watched_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/file.h"
#include "cli/image_file.h"

namespace atl::cli::selftest {
namespace {

std::string stamp_of(const std::string& path) {
  struct stat status;
  if (lstat(path.c_str(), &status) != 0) return "";
  std::string text;
  for (int64_t part : {int64_t(status.st_dev), int64_t(status.st_ino), int64_t(status.st_mode),
                       int64_t(status.st_uid), int64_t(status.st_gid), int64_t(status.st_size),
                       int64_t(status.st_mtim.tv_sec), int64_t(status.st_mtim.tv_nsec),
                       int64_t(status.st_ctim.tv_sec), int64_t(status.st_ctim.tv_nsec)})
    text += std::to_string(part) + " ";
  return text;
}

Result<std::string> digest_of(const std::string& path) {
  struct stat status;
  if (lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::string();
  ATOLL_TRY(Fd fd, open_file(path, O_RDONLY | O_NOFOLLOW));
  ATOLL_TRY(Digest digest, hash_file(fd.get(), -1));
  return digest.string();
}

}  // namespace

Result<WatchedFiles> WatchedFiles::watch(const std::vector<std::string>& paths) {
  WatchedFiles watched;
  for (const std::string& path : paths) {
    ATOLL_TRY(std::string digest, digest_of(path));
    watched.files_[path] = Entry{stamp_of(path), digest};
  }
  return watched;
}

std::vector<std::string> WatchedFiles::take_changes() {
  std::vector<std::string> changes;
  for (auto& [path, entry] : files_) {
    std::string now = stamp_of(path);
    if (now == entry.stamp) continue;
    changes.push_back(path + (now.empty() ? " was removed" : " was changed"));
    entry.stamp = now;
  }
  return changes;
}

Result<std::vector<std::string>> WatchedFiles::find_other_bytes() const {
  std::vector<std::string> found;
  for (const auto& [path, entry] : files_) {
    ATOLL_TRY(std::string now, digest_of(path));
    if (now != entry.digest) found.push_back(path + " has other bytes than at the beginning");
  }
  return found;
}

std::vector<std::string> files_beneath(const std::string& directory) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory, error))
    if (entry.is_regular_file(error) && !entry.is_symlink(error))
      paths.push_back(entry.path().string());
  return paths;
}

}  // namespace atl::cli::selftest
