#include "warden/layer_pool.h"

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
#include "linux/mounts.h"
#include "linux/quota_groups.h"
#include "linux/subvolume.h"

namespace atl::warden {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr seconds kBusyLimit{5};
constexpr useconds_t kBusyPauseUs = 10'000;

// The blocks of removed layers are freed by a thread that wakes after a commit, so the interval is
// how long they stay taken. With the kernel's 30 s, thousands of dead layers would pile up in a
// busy pool.
constexpr const char* kPoolOptions = "commit=5";

std::string pool_file(const Host& host) { return host.state_dir + "/pool.btrfs"; }
std::string pool_mount(const Host& host) { return host.run_dir + "/pool"; }

Result<uint64_t> default_bytes(const Host& host) {
  struct statvfs status;
  if (statvfs(host.state_dir.c_str(), &status) != 0)
    return Error::system("statvfs " + host.state_dir);
  uint64_t half = status.f_bavail * status.f_frsize / 2;
  return std::min(half, kMaxDefaultPoolBytes) / 4096 * 4096;
}

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

Result<void> run_mkfs(const std::string& file) {
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

// Under another name until it is whole: a crash in the middle must not leave half a file system.
Result<void> create_pool_file(const Host& host, uint64_t bytes) {
  if (bytes == 0) {
    ATOLL_TRY(bytes, default_bytes(host));
  }
  if (bytes < kMinPoolBytes)
    return Error(Code::kExhausted, "the layer pool would have less than 256 MiB", ENOSPC);
  std::string temporary = pool_file(host) + ".new";
  ATOLL_TRY(Fd file, open_file(temporary, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600));
  if (ftruncate(file.get(), static_cast<off_t>(bytes)) != 0)
    return Error::system("truncate " + temporary);
  ATOLL_TRY_VOID(run_mkfs(temporary));
  if (fsync(file.get()) != 0) return Error::system("fsync " + temporary);
  if (rename(temporary.c_str(), pool_file(host).c_str()) != 0)
    return Error::system("rename " + temporary);
  log_info("layer pool made", {{"file", pool_file(host)}, {"bytes", bytes}});
  return {};
}

Result<Fd> open_pool_file(const Host& host) {
  ATOLL_TRY(Fd file, open_file(pool_file(host), O_RDWR | O_NOFOLLOW));
  struct stat status;
  if (fstat(file.get(), &status) != 0) return Error::system("stat " + pool_file(host));
  if (!S_ISREG(status.st_mode) || status.st_uid != 0 || (status.st_mode & 022) != 0)
    return Error::from_errno(pool_file(host) + " must be a regular file that only root can write",
                             EPERM);
  return file;
}

// EBUSY: the last isolate of a warden before us is just letting go of the same device.
Result<void> mount_device(const std::string& device, const std::string& target) {
  auto deadline = steady_clock::now() + kBusyLimit;
  unsigned long flags = MS_NOATIME | MS_NOSUID | MS_NODEV;
  while (mount(device.c_str(), target.c_str(), "btrfs", flags, kPoolOptions) != 0) {
    if (errno != EBUSY || steady_clock::now() > deadline)
      return Error::system("mount " + device + " on " + target);
    usleep(kBusyPauseUs);
  }
  return {};
}

}  // namespace

bool pool_exists(const Host& host) { return access(pool_file(host).c_str(), F_OK) == 0; }

Result<void> mount_pool(Host& host, uint64_t bytes) {
  if (!pool_exists(host)) ATOLL_TRY_VOID(create_pool_file(host, bytes));
  ATOLL_TRY(Fd file, open_pool_file(host));
  ATOLL_TRY(auto device, linux::share_loop_device(file.get(), linux::LoopAccess::kReadWrite));
  ATOLL_TRY_VOID(make_directory(pool_mount(host), 0700));
  ATOLL_TRY_VOID(mount_device(device.path, pool_mount(host)));
  ATOLL_TRY(host.pool, open_file(pool_mount(host), O_RDONLY | O_DIRECTORY));
  struct stat status;
  if (fstat(device.fd.get(), &status) != 0) return Error::system("stat " + device.path);
  host.pool_device = status.st_rdev;
  auto quotas = linux::enable_btrfs_quotas(host.pool.get());
  host.pool_quotas = quotas ? *quotas : linux::BtrfsQuotas::kNone;
  if (!quotas) log_error("launches will be refused", {quotas.error()});
  return linux::remove_stale_quota_groups(host.pool.get());
}

Result<void> unmount_pool(Host& host) {
  host.pool.reset();
  ATOLL_TRY_VOID(linux::unmount_if_mounted(pool_mount(host)));
  if (!pool_exists(host)) return {};
  ATOLL_TRY(Fd file, open_pool_file(host));
  auto deadline = steady_clock::now() + kBusyLimit;
  while (true) {
    ATOLL_TRY(auto device, linux::find_loop_device(file.get()));
    if (!device) return {};
    if (steady_clock::now() > deadline)
      return Error::from_errno(device->path + " still shows " + pool_file(host), EBUSY);
    device.reset();
    usleep(kBusyPauseUs);
  }
}

Result<void> check_pool(const Host& host) {
  if (!host.pool) return Error::from_errno("the layer pool is not mounted", ENODEV);
  ATOLL_TRY(uint64_t magic, linux::file_system_magic(pool_mount(host)));
  if (magic != linux::kBtrfsMagic)
    return Error::from_errno("the layer pool is not mounted", ENODEV);
  return {};
}

Result<void> create_layer(const Host& host, const SandboxId& id, uint64_t disk_bytes) {
  std::string name = id.string();
  ATOLL_TRY_VOID(linux::create_subvolume(host.pool.get(), name, disk_bytes));
  for (const char* part : {"/upper", "/work"}) {
    if (mkdirat(host.pool.get(), (name + part).c_str(), 0755) != 0)
      return Error::system("mkdir " + name + part);
  }
  return {};
}

Result<void> remove_layer(const Host& host, const SandboxId& id) {
  if (!host.pool) return {};  // there is no pool, so there is no layer
  return linux::remove_subvolume(host.pool.get(), id.string());
}

}  // namespace atl::warden
