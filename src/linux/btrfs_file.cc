#include "linux/btrfs_file.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "linux/loop_device.h"

namespace atl::linux {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr seconds kBusyLimit{30};
constexpr useconds_t kBusyPauseUs = 10'000;

[[noreturn]] void exec_mkfs(const char* file) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(null, STDIN_FILENO);
  dup2(null, STDOUT_FILENO);
  const char* arguments[] = {"mkfs.btrfs", "-q",     "-K", "-d",   "single",
                             "-m",         "single", file, nullptr};
  const char* environment[] = {"LC_ALL=C", nullptr};
  for (const char* program : {"/usr/sbin/mkfs.btrfs", "/sbin/mkfs.btrfs", "/usr/bin/mkfs.btrfs"})
    execve(program, const_cast<char**>(arguments), const_cast<char**>(environment));
  _exit(127);
}

Result<void> make_btrfs(const std::string& file) {
  pid_t child = fork();
  if (child < 0) return Error::system("fork");
  if (child == 0) exec_mkfs(file.c_str());
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return Error::system("wait for mkfs.btrfs");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
    return Error(Code::kUnsupported, "mkfs.btrfs is not installed", ENOENT);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return Error(Code::kSystem, "mkfs.btrfs " + file + " failed", EIO);
  return {};
}

}  // namespace

Result<void> create_btrfs_file(const std::string& path, uint64_t bytes) {
  std::string temporary = path + ".new";
  ATOLL_TRY(Fd file, open_file(temporary, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600));
  if (ftruncate(file.get(), static_cast<off_t>(bytes)) != 0)
    return Error::system("truncate " + temporary);
  auto allocated = allocate_whole_file(file.get(), 0);
  if (!allocated && allocated.error().system_errno() != EOPNOTSUPP) {
    (void)unlink(temporary.c_str());
    return std::move(allocated).error().with_context("make " + temporary);
  }
  if (!allocated) log_warning("the file may find no room on its disk", {allocated.error()});
  ATOLL_TRY_VOID(make_btrfs(temporary));
  if (fsync(file.get()) != 0) return Error::system("fsync " + temporary);
  if (rename(temporary.c_str(), path.c_str()) != 0) return Error::system("rename " + temporary);
  return {};
}

Result<void> allocate_whole_file(int file, uint64_t left_bytes) {
  constexpr uint64_t kStatBlock = 512;
  struct stat status;
  struct statvfs space;
  if (fstat(file, &status) != 0 || fstatvfs(file, &space) != 0) return Error::system("stat a file");
  auto length = static_cast<uint64_t>(status.st_size);
  uint64_t has = std::min(length, static_cast<uint64_t>(status.st_blocks) * kStatBlock);
  // What fails half-way keeps what it got, which would be the end of whoever else needs a little.
  if (has < length && length - has + left_bytes > space.f_bavail * space.f_frsize)
    return Error::from_errno("allocate " + std::to_string(length - has) + " bytes", ENOSPC);
  // Not posix_fallocate(), which would write all of it where the file system cannot.
  while (fallocate(file, 0, 0, status.st_size) != 0)
    if (errno != EINTR)
      return Error::system("allocate " + std::to_string(status.st_size) + " bytes");
  return {};
}

Result<uint64_t> half_of_free_space(const std::string& directory) {
  struct statvfs status;
  if (statvfs(directory.c_str(), &status) != 0) return Error::system("statvfs " + directory);
  return status.f_bavail * status.f_frsize / 2;
}

// EBUSY: somebody is just letting go of the same device.
Result<void> mount_btrfs(const std::string& device, const std::string& target,
                         const char* options) {
  auto deadline = steady_clock::now() + kBusyLimit;
  unsigned long flags = MS_NOATIME | MS_NOSUID | MS_NODEV;
  while (mount(device.c_str(), target.c_str(), "btrfs", flags, options) != 0) {
    if (errno != EBUSY || steady_clock::now() > deadline)
      return Error::system("mount " + device + " on " + target);
    usleep(kBusyPauseUs);
  }
  return {};
}

Result<void> await_detached(int file) {
  auto deadline = steady_clock::now() + kBusyLimit;
  while (true) {
    ATOLL_TRY(auto device, find_loop_device(file));
    if (!device) return {};
    if (steady_clock::now() > deadline)
      return Error::from_errno(device->path + " still shows the file", EBUSY);
    device.reset();
    usleep(kBusyPauseUs);
  }
}

}  // namespace atl::linux
