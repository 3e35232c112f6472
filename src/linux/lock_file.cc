#include "linux/lock_file.h"

#include <fcntl.h>
#include <signal.h>

#include <charconv>

#include "base/file.h"
#include "linux/pidfd.h"

namespace atl::linux {
namespace {

struct flock whole_file() {
  struct flock range = {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  return range;
}

// 0: nobody.
Result<pid_t> holder_pid(int fd) {
  struct flock range = whole_file();
  if (fcntl(fd, F_GETLK, &range) != 0) return Error::system("query lock");
  if (range.l_type == F_UNLCK) return pid_t{0};
  if (range.l_pid <= 0)
    return Error(Code::kConflict, "the lock is held by a process that is not visible from here");
  return range.l_pid;
}

// Read from status, because the owner of /proc/<pid> is root for a process that is not dumpable.
Result<uid_t> effective_uid(pid_t pid) {
  ATOLL_TRY(std::string status, read_file("/proc/" + std::to_string(pid) + "/status"));
  size_t line = status.find("\nUid:\t");
  size_t second = line == status.npos ? line : status.find('\t', line + 6);
  uid_t uid = 0;
  if (second == status.npos ||
      std::from_chars(status.data() + second + 1, status.data() + status.size(), uid).ec !=
          std::errc())
    return Error(Code::kCorrupt, "no Uid in /proc/" + std::to_string(pid) + "/status");
  return uid;
}

}  // namespace

Result<LockFile> LockFile::acquire(const std::string& path) {
  ATOLL_TRY(Fd fd, open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  struct flock range = whole_file();
  if (fcntl(fd.get(), F_SETLK, &range) == 0) return LockFile(std::move(fd));
  if (errno != EAGAIN && errno != EACCES) return Error::system("lock " + path);
  ATOLL_TRY(pid_t pid, holder_pid(fd.get()));
  return Error(Code::kConflict, path + " is locked by process " + std::to_string(pid));
}

Result<void> LockFile::keep_across_exec() {
  if (fcntl(fd_.get(), F_SETFD, 0) != 0) return Error::system("keep a lock");
  return {};
}

Result<std::optional<LockHolder>> find_lock_holder(const std::string& path, uid_t uid) {
  // O_NONBLOCK: whoever owns the directory could have put a FIFO there.
  auto fd = open_file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!fd && fd.error().system_errno() == ENOENT) return std::optional<LockHolder>();
  if (!fd) return std::move(fd).error();
  ATOLL_TRY(pid_t pid, holder_pid(fd->get()));
  if (pid == 0) return std::optional<LockHolder>();
  auto pidfd = open_pidfd(pid);
  if (!pidfd && pidfd.error().system_errno() == ESRCH) return std::optional<LockHolder>();
  if (!pidfd) return std::move(pidfd).error();
  // Asked again after opening: the same answer proves that the number was not reused in between.
  ATOLL_TRY(pid_t still, holder_pid(fd->get()));
  if (still != pid) return std::optional<LockHolder>();
  auto owner = effective_uid(pid);
  if (!owner && owner.error().code() == Code::kNotFound) return std::optional<LockHolder>();
  if (!owner) return std::move(owner).error();
  if (*owner != uid)
    return Error(Code::kDenied, path + " is locked by process " + std::to_string(pid) +
                                    " of user " + std::to_string(*owner) + ", expected user " +
                                    std::to_string(uid));
  return std::optional<LockHolder>(LockHolder{pid, std::move(*pidfd)});
}

}  // namespace atl::linux
