#include "linux/uid_registry.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <memory>

#include "base/file.h"
#include "base/ids.h"

namespace atl::linux {
namespace {

constexpr const char* kRegistry = "/run/atoll-uid-ranges";
constexpr int kMaxGaps = 1000;

// Nothing: the directory is none, or was removed before the lock was ours, and another one may be
// in its place.
Result<std::optional<Fd>> lock_directory(int how) {
  auto directory = open_file(kRegistry, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!directory && directory.error().system_errno() == ENOENT) return std::optional<Fd>();
  if (!directory) return std::move(directory).error();
  struct stat status;
  if (fstat(directory->get(), &status) != 0) return Error::system("stat the uid registry");
  if (status.st_uid != 0 || (status.st_mode & 077) != 0)
    return Error::from_errno(std::string(kRegistry) + " must be root's alone", EPERM);
  while (flock(directory->get(), how) != 0)
    if (errno != EINTR) return Error::system("lock the uid registry");
  if (fstat(directory->get(), &status) != 0) return Error::system("stat the uid registry");
  if (status.st_nlink == 0) return std::optional<Fd>();
  return std::optional(std::move(*directory));
}

}  // namespace

Result<UidRegistry> UidRegistry::open(Lock lock) {
  for (int attempt = 0; attempt < kMaxGaps; ++attempt) {
    if (mkdir(kRegistry, 0700) != 0 && errno != EEXIST)
      return Error::system(std::string("mkdir ") + kRegistry);
    ATOLL_TRY(auto directory, lock_directory(lock == Lock::kShared ? LOCK_SH : LOCK_EX));
    if (directory) return UidRegistry(std::move(*directory));
  }
  return Error::from_errno(std::string("open ") + kRegistry, EAGAIN);
}

std::optional<uint32_t> UidRegistry::parse(std::string_view name) {
  uint32_t number = 0;
  auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (code != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

Result<uint32_t> UidRegistry::take(uint32_t count, const std::string& owner,
                                   const std::function<Result<void>(const std::string&)>& note) {
  ATOLL_TRY(Fd entry, open_at(directory_.get(), ".", O_TMPFILE | O_WRONLY, 0600));
  ATOLL_TRY_VOID(write_all(entry.get(), owner));
  std::string source = "/proc/self/fd/" + std::to_string(entry.get());
  uint16_t start = 0;
  fill_random({reinterpret_cast<unsigned char*>(&start), sizeof start});
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t number = (start + i) % count;
    std::string name = std::to_string(number);
    if (faccessat(directory_.get(), name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) continue;
    ATOLL_TRY_VOID(note(name));
    int linked =
        linkat(AT_FDCWD, source.c_str(), directory_.get(), name.c_str(), AT_SYMLINK_FOLLOW);
    if (linked == 0) return number;
    if (errno != EEXIST) return Error::system("take uid range " + name);
  }
  return Error(Code::kExhausted, "every uid range is taken", EAGAIN);
}

Result<void> UidRegistry::remove(const std::string& name) {
  if (unlinkat(directory_.get(), name.c_str(), 0) == 0 || errno == ENOENT) return {};
  return Error::system("free uid range " + name);
}

Result<void> UidRegistry::free(uint32_t number, const std::string& owner) {
  std::string name = std::to_string(number);
  auto found = read_file_at(directory_.get(), name);
  if (!found && found.error().system_errno() == ENOENT) return {};
  if (!found) return std::move(found).error();
  return *found == owner ? remove(name) : Result<void>();
}

Result<void> UidRegistry::free_stale(const std::function<bool(const std::string&)>& is_stale) {
  ATOLL_TRY(Fd listing, open_at(directory_.get(), ".", O_RDONLY | O_DIRECTORY));
  std::unique_ptr<DIR, int (*)(DIR*)> directory(fdopendir(listing.release()), closedir);
  if (!directory) return Error::system("read the uid registry");
  while (dirent* entry = readdir(directory.get())) {
    if (!parse(entry->d_name)) continue;
    ATOLL_TRY(std::string owner, read_file_at(directory_.get(), entry->d_name));
    if (is_stale(owner)) ATOLL_TRY_VOID(remove(entry->d_name));
  }
  return {};
}

Result<void> UidRegistry::remove_empty() {
  // While nobody has it open to take a range.
  ATOLL_TRY(auto directory, lock_directory(LOCK_EX));
  if (!directory || rmdir(kRegistry) == 0 || errno == ENOENT || errno == ENOTEMPTY) return {};
  return Error::system(std::string("rmdir ") + kRegistry);
}

}  // namespace atl::linux
