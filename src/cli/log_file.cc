#include "cli/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"

namespace atl::cli {

Result<LogFile> LogFile::open(std::string path, off_t limit_bytes) {
  // O_APPEND: after the file was emptied the writer must not go on at its old offset.
  ATOLL_TRY(Fd fd, open_file(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW, 0640));
  return LogFile(std::move(path), limit_bytes, std::move(fd));
}

Result<void> LogFile::rotate() {
  struct stat status;
  if (fstat(fd_.get(), &status) != 0) return Error::system("stat " + path_);
  if (status.st_size <= limit_bytes_) return {};
  std::string previous = path_ + ".1";
  ATOLL_TRY(Fd copy, open_file(previous, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0640));
  off_t offset = 0;
  while (offset < status.st_size) {
    ssize_t copied = copy_file_range(fd_.get(), &offset, copy.get(), nullptr,
                                     static_cast<size_t>(status.st_size - offset), 0);
    if (copied < 0) return Error::system("copy " + path_);
    if (copied == 0) break;
  }
  if (ftruncate(fd_.get(), 0) != 0) return Error::system("truncate " + path_);
  return {};
}

std::string last_lines(const std::string& path, size_t count) {
  constexpr off_t kTailBytes = 16 * 1024;
  auto fd = open_file(path, O_RDONLY);
  if (!fd) return fd.error().message();
  off_t size = lseek(fd->get(), 0, SEEK_END);
  lseek(fd->get(), std::max<off_t>(0, size - kTailBytes), SEEK_SET);
  auto tail = read_all(fd->get());
  if (!tail) return tail.error().message();
  size_t begin = tail->size();
  if (begin > 0 && tail->back() == '\n') --begin;
  for (size_t found = 0; found < count && begin != 0; ++found) {
    size_t newline = tail->rfind('\n', begin - 1);
    if (newline == tail->npos) return *tail;
    begin = newline;
  }
  return tail->substr(begin == 0 ? 0 : begin + 1);
}

}  // namespace atl::cli
