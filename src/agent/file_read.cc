#include "agent/file_read.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "agent/file_entry.h"
#include "agent/file_path.h"

namespace atl::agent {
namespace {

constexpr size_t kReadBytes = 128 * 1024;

Result<void> check_regular(int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0) return file_error("stat");
  if (S_ISDIR(status.st_mode)) return file_error(EISDIR, "open");
  if (!S_ISREG(status.st_mode)) return file_error(ENXIO, "open");
  return {};
}

}  // namespace

Result<void> stat_file(const FileRequest& request, FileWire& wire) {
  ATOLL_TRY(Place place, find_place(request.path));
  Fd file = open_any(place.directory.get(), place.name, O_PATH | O_NOFOLLOW);
  if (!file) return file_error("open");
  ATOLL_TRY(FileEntry entry, read_entry(file.get(), place.path));
  ATOLL_TRY_VOID(read_attributes(file.get(), entry));
  return wire.send(encode_record(entry));
}

Result<Fd> open_regular(int directory, const std::string& name, int flags) {
  Fd found = open_any(directory, name, O_PATH | flags);
  if (!found) return file_error("open");
  ATOLL_TRY_VOID(check_regular(found.get()));
  // What is opened by name now may be another file, so it is looked at again.
  Fd file = open_any(directory, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | flags);
  if (!file) return file_error("open");
  ATOLL_TRY_VOID(check_regular(file.get()));
  return file;
}

Result<void> read_range(const FileRequest& request, FileWire& wire) {
  ATOLL_TRY(Place place, find_place(request.path));
  ATOLL_TRY(Fd file, open_regular(place.directory.get(), place.name, 0));
  ATOLL_TRY(FileEntry entry, read_entry(file.get(), place.path));
  ATOLL_TRY_VOID(wire.send(encode_record(entry)));
  uint64_t beyond = entry.size - std::min(request.offset, entry.size);
  return send_range(file.get(), request.offset, std::min(request.length, beyond), wire);
}

Result<void> send_range(int file, uint64_t offset, uint64_t length, FileWire& wire) {
  std::string bytes(std::min<uint64_t>(length, kReadBytes), '\0');
  while (length > 0) {
    size_t wanted = std::min<uint64_t>(length, bytes.size());
    ssize_t count = pread(file, bytes.data(), wanted, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error("read");
    if (count == 0) return file_error(EIO, "read to the end");
    auto taken = static_cast<size_t>(count);
    ATOLL_TRY_VOID(wire.send_bytes({bytes.data(), taken}));
    offset += taken;
    length -= taken;
  }
  return {};
}

}  // namespace atl::agent
