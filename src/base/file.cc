#include "base/file.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

namespace atl {

Result<Fd> open_at(int directory, const std::string& path, int flags, unsigned mode) {
  int fd = openat(directory, path.c_str(), flags | O_CLOEXEC, mode);
  if (fd < 0) return Error::system("open " + path);
  return Fd(fd);
}

Result<Fd> open_file(const std::string& path, int flags, unsigned mode) {
  return open_at(AT_FDCWD, path, flags, mode);
}

Result<std::string> read_all(int fd, size_t limit) {
  std::string bytes;
  char buffer[4096];
  while (true) {
    ssize_t count = read(fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error::system("read");
    if (count == 0) return bytes;
    bytes.append(buffer, static_cast<size_t>(count));
    if (bytes.size() > limit) return Error(Code::kExhausted, "read: file is over its limit");
  }
}

Result<std::string> read_file_at(int directory, const std::string& path, size_t limit) {
  ATOLL_TRY(Fd fd, open_at(directory, path, O_RDONLY));
  auto bytes = read_all(fd.get(), limit);
  if (!bytes) return std::move(bytes).error().with_context(path);
  return bytes;
}

Result<std::string> read_file(const std::string& path, size_t limit) {
  return read_file_at(AT_FDCWD, path, limit);
}

Result<void> write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t count = write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error::system("write");
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

Result<void> write_file_at(int directory, const std::string& path, std::string_view bytes) {
  ATOLL_TRY(Fd fd, open_at(directory, path, O_WRONLY));
  ssize_t count = write(fd.get(), bytes.data(), bytes.size());
  if (count < 0) return Error::system("write " + path);
  if (static_cast<size_t>(count) != bytes.size())
    return Error(Code::kSystem, "write " + path + ": short write");
  return {};
}

Result<void> sync_directory_of(const std::string& path) {
  size_t slash = path.rfind('/');
  std::string directory = ".";
  if (slash != path.npos) directory = slash == 0 ? "/" : path.substr(0, slash);
  ATOLL_TRY(Fd fd, open_file(directory, O_RDONLY | O_DIRECTORY));
  if (fsync(fd.get()) != 0) return Error::system("fsync " + directory);
  return {};
}

namespace {

Result<void> write_synced(const std::string& path, std::string_view bytes, unsigned mode) {
  ATOLL_TRY(Fd fd, open_file(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode));
  if (fchmod(fd.get(), mode) != 0) return Error::system("chmod " + path);
  ATOLL_TRY_VOID(write_all(fd.get(), bytes));
  if (fsync(fd.get()) != 0) return Error::system("fsync " + path);
  return {};
}

}  // namespace

Result<void> replace_file(const std::string& path, std::string_view bytes, unsigned mode) {
  std::string temporary = path + ".new";
  Result<void> done = write_synced(temporary, bytes, mode);
  if (done && rename(temporary.c_str(), path.c_str()) != 0)
    done = Error::system("rename " + temporary);
  if (done) return sync_directory_of(path);
  unlink(temporary.c_str());
  return done;
}

Result<void> make_directory(const std::string& path, unsigned mode) {
  if (mkdir(path.c_str(), mode) == 0) return {};
  if (errno != EEXIST) return Error::system("mkdir " + path);
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return Error::system("stat " + path);
  if (!S_ISDIR(status.st_mode)) return Error::from_errno("mkdir " + path, ENOTDIR);
  return {};
}

}  // namespace atl
