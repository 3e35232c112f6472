#include "linux/masks.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file.h"
#include "linux/filled_tmpfs.h"
#include "linux/mounts.h"

namespace atl::linux {
namespace {

constexpr const char* kEmptyFile = "file";
constexpr const char* kEmptyDirectory = "directory";

// Readable, because programs expect it; not even root inside may write.
constexpr const char* kReadOnly[] = {"bus", "fs", "irq", "sys", "sysrq-trigger"};

// Addresses and logs of the kernel, keys, the host's hardware, disks and command line. Each costs
// every launch about 8 us, so what is only a number or two of the host stays, as does what tools
// commonly read: meminfo, cpuinfo, stat, vmstat, loadavg, uptime, version, filesystems, cgroups.
constexpr const char* kMaskedFiles[] = {
    "cmdline",    "config.gz",   "diskstats",     "interrupts",  "kallsyms",    "kcore",
    "key-users",  "keys",        "kmsg",          "kpagecgroup", "kpagecount",  "kpageflags",
    "mtrr",       "modules",     "latency_stats", "partitions",  "sched_debug", "slabinfo",
    "timer_list", "timer_stats", "vmallocinfo"};
constexpr const char* kMaskedDirectories[] = {"acpi", "asound", "driver", "scsi", "tty"};

// One call each, by a name relative to the root of procfs: the targets are the kernel's own, which
// nobody can replace by a link. What this kernel does not have is no error. A directory where a
// file is expected is (ENOTDIR), as is the reverse.
Result<bool> bind_over(const std::string& source, const char* name) {
  if (mount(source.c_str(), name, nullptr, MS_BIND, nullptr) == 0) return true;
  if (errno == ENOENT) return false;
  return Error::system(std::string("cover /proc/") + name);
}

Result<void> write_protect(const char* name) {
  ATOLL_TRY(bool there, bind_over(name, name));
  if (!there) return {};
  mount_attr read_only = {};
  read_only.attr_set = MOUNT_ATTR_RDONLY;
  if (mount_setattr(AT_FDCWD, name, AT_SYMLINK_NOFOLLOW, &read_only, sizeof read_only) != 0)
    return Error::system(std::string("make read-only /proc/") + name);
  return {};
}

// Login shells set a PATH of their own, and /usr/local/bin is in each of them.
Result<void> make_links(int masks, std::string_view resolver) {
  for (const char* name : {"links", "links/etc", "links/opt", "links/opt/atoll", "links/usr",
                           "links/usr/local", "links/usr/local/bin"})
    if (mkdirat(masks, name, 0755) != 0) return Error::system(std::string("mkdir ") + name);
  if (symlinkat("/run/atoll/bin/sudo", masks, "links/usr/local/bin/sudo") != 0)
    return Error::system("link sudo");
  ATOLL_TRY(Fd file, open_at(masks, kResolverFile, O_WRONLY | O_CREAT | O_EXCL, 0644));
  return write_all(file.get(), resolver);
}

}  // namespace

Result<Fd> mount_masks(const std::string& target, std::string_view resolver) {
  unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  ATOLL_TRY(Fd masks, mount_tmpfs(target, flags, "mode=0555,size=4k,nr_inodes=16"));
  ATOLL_TRY(Fd file, open_at(masks.get(), kEmptyFile, O_WRONLY | O_CREAT | O_EXCL, 0444));
  if (mkdirat(masks.get(), kEmptyDirectory, 0555) != 0) return Error::system("mkdir in " + target);
  ATOLL_TRY_VOID(make_links(masks.get(), resolver));
  file.reset();  // open for writing, it would forbid what follows
  ATOLL_TRY_VOID(make_tmpfs_read_only(target, flags));
  return masks;
}

Result<void> mask_proc(int proc, const std::string& masks) {
  struct statfs status;
  if (fstatfs(proc, &status) != 0) return Error::system("statfs /proc");
  if (status.f_type != PROC_SUPER_MAGIC) return Error::from_errno("/proc is not procfs", EXDEV);
  if (fchdir(proc) != 0) return Error::system("chdir to /proc");
  for (const char* name : kReadOnly) ATOLL_TRY_VOID(write_protect(name));
  for (const char* name : kMaskedFiles) ATOLL_TRY_VOID(bind_over(masks + "/" + kEmptyFile, name));
  for (const char* name : kMaskedDirectories)
    ATOLL_TRY_VOID(bind_over(masks + "/" + kEmptyDirectory, name));
  return {};
}

Result<Fd> clone_empty_directory(int masks) { return clone_mount(masks, kEmptyDirectory); }

}  // namespace atl::linux
