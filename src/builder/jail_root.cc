#include "builder/jail_root.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "linux/mounts.h"

namespace atl::builder {
namespace {

constexpr uint64_t kNoSuidNoDev = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
constexpr uint64_t kReadOnly = kNoSuidNoDev | MOUNT_ATTR_RDONLY;

// The loader's cache, else every start looks through all directories.
constexpr const char* kEtcAlways[] = {"ld.so.cache"};
// How this host reaches mirrors and registries, and whom it trusts.
constexpr const char* kEtcNetwork[] = {"apt",  "ssl",   "ca-certificates", "resolv.conf", "npmrc",
                                       "dpkg", "hosts", "nsswitch.conf",   "gai.conf",    "perl"};
constexpr const char* kDevices[] = {"null",    "zero", "full",    "random",
                                    "urandom", "tty",  "console", "ptmx"};
constexpr const char* kDirectories[] = {
    "etc",     "dev",     "dev/pts", "dev/shm", "proc",         "sys",   "run", "tmp",  "var",
    "var/tmp", "var/lib", "var/log", "root",    "var/lib/dpkg", "build", "usr", "cache"};
constexpr const char* kUsrParts[] = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"};
constexpr std::string_view kPasswd =
    "root:x:0:0:root:/root:/bin/sh\n_apt:x:100:65534::/nonexistent:/usr/sbin/nologin\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
constexpr std::string_view kGroup = "root:x:0:\nnogroup:x:65534:\n";

// A copy of one mount of the host, without what is mounted below it. Nothing when it is absent.
Result<void> show(const std::string& source, const std::string& target, uint64_t attributes) {
  struct stat status;
  if (stat(source.c_str(), &status) != 0) return {};
  ATOLL_TRY(
      Fd place,
      open_file(target, S_ISDIR(status.st_mode) ? O_PATH | O_DIRECTORY : O_WRONLY | O_CREAT, 0600));
  ATOLL_TRY(Fd copy, linux::clone_mount(AT_FDCWD, source));
  ATOLL_TRY_VOID(linux::set_attributes(copy.get(), {.set = attributes}));
  return linux::attach_mount(copy.get(), place.get());
}

Result<void> show_etc(const char* name) {
  std::string path = std::string("/etc/") + name;
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return {};
  if (S_ISDIR(status.st_mode)) ATOLL_TRY_VOID(make_directory("etc/" + std::string(name), 0755));
  return show(path, "etc/" + std::string(name), kReadOnly);
}

// As on the host: links into /usr where it is merged, directories where it is not.
Result<void> show_usr() {
  ATOLL_TRY_VOID(show("/usr", "usr", kReadOnly));
  for (const char* name : kUsrParts) {
    std::string path = std::string("/") + name;
    char target[64];
    ssize_t length = readlink(path.c_str(), target, sizeof target - 1);
    struct stat status;
    if (length > 0) {
      target[length] = '\0';
      if (symlink(target, name) != 0) return Error::system("link " + path);
    } else if (stat(path.c_str(), &status) == 0) {
      ATOLL_TRY_VOID(make_directory(name, 0755));
      ATOLL_TRY_VOID(show(path, name, kReadOnly));
    }
  }
  return {};
}

Result<void> show_devices() {
  for (const char* name : kDevices)
    ATOLL_TRY_VOID(show(std::string("/dev/") + name, std::string("dev/") + name,
                        MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC));
  if (symlink("/proc/self/fd", "dev/fd") != 0) return Error::system("link /dev/fd");
  return {};
}

Result<void> show_work(const Jail& jail) {
  uint64_t attributes = kNoSuidNoDev;
  if (jail.programs == Jail::Programs::kFiltered) attributes |= MOUNT_ATTR_NOEXEC;
  ATOLL_TRY_VOID(show(jail.work, "build", attributes));
  if (jail.cache.empty()) return {};
  return show(jail.cache, "cache", kNoSuidNoDev | MOUNT_ATTR_NOEXEC);
}

Result<void> write_new(const char* path, std::string_view text) {
  ATOLL_TRY(Fd file, open_file(path, O_WRONLY | O_CREAT | O_EXCL, 0644));
  return write_all(file.get(), text);
}

Result<void> fill(const Jail& jail) {
  for (const char* name : kDirectories) ATOLL_TRY_VOID(make_directory(name, 0755));
  for (const char* name : {"tmp", "var/tmp", "dev/shm"})
    if (chmod(name, 01777) != 0) return Error::system("chmod");
  ATOLL_TRY_VOID(show_usr());
  for (const char* name : kEtcAlways) ATOLL_TRY_VOID(show_etc(name));
  if (jail.network == Jail::Network::kHost)
    for (const char* name : kEtcNetwork) ATOLL_TRY_VOID(show_etc(name));
  ATOLL_TRY_VOID(write_new("etc/passwd", kPasswd));
  ATOLL_TRY_VOID(write_new("etc/group", kGroup));
  ATOLL_TRY_VOID(write_new("var/lib/dpkg/status", ""));
  ATOLL_TRY_VOID(show_devices());
  ATOLL_TRY_VOID(show_work(jail));
  ATOLL_TRY(Fd processes, linux::make_mount("proc", {}, kNoSuidNoDev | MOUNT_ATTR_NOEXEC));
  return linux::attach_mount_at(processes.get(), AT_FDCWD, "proc");
}

}  // namespace

Result<void> enter_jail_root(const Ground& ground, const Jail& jail) {
  ATOLL_TRY_VOID(linux::make_all_mounts_private());
  ATOLL_TRY(Fd place, open_file(ground.mount_point, O_PATH | O_DIRECTORY));
  ATOLL_TRY(Fd root, linux::make_mount("tmpfs", {{"size", "64m"}, {"mode", "0755"}}, kNoSuidNoDev));
  ATOLL_TRY_VOID(linux::attach_mount(root.get(), place.get()));
  if (fchdir(root.get()) != 0) return Error::system("enter the jail's root");
  umask(0022);
  ATOLL_TRY_VOID(fill(jail));
  if (syscall(SYS_pivot_root, ".", ".") != 0) return Error::system("pivot_root");
  if (umount2(".", MNT_DETACH) != 0) return Error::system("leave the host's root");
  if (chdir("/") != 0) return Error::system("chdir /");
  return {};
}

}  // namespace atl::builder
