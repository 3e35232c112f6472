#include "warden/masks.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file.h"
#include "linux/filled_tmpfs.h"
#include "linux/mounts.h"

namespace atl::warden {
namespace {

constexpr const char* kEmptyFile = "file";
constexpr const char* kEmptyDirectory = "directory";

// Readable, because programs expect it; not even root inside may write.
constexpr const char* kReadOnly[] = {"bus", "fs", "irq", "sys", "sysrq-trigger"};

// Addresses and logs of the kernel, keys, the host's hardware, disks and command line. Each costs
// every launch about 15 us, so what is only a number or two of the host stays, as does what tools
// commonly read: meminfo, cpuinfo, stat, vmstat, loadavg, uptime, version, filesystems, cgroups.
constexpr const char* kMasked[] = {
    "acpi",        "asound",      "cmdline",    "config.gz",     "diskstats",  "driver",
    "interrupts",  "kallsyms",    "kcore",      "key-users",     "keys",       "kmsg",
    "kpagecgroup", "kpagecount",  "kpageflags", "latency_stats", "modules",    "mtrr",
    "partitions",  "sched_debug", "scsi",       "slabinfo",      "timer_list", "timer_stats",
    "tty",         "vmallocinfo"};

// Nothing when there is no such file here: kernels differ in what they have.
Result<Fd> open_beneath(int proc, const char* name) {
  open_how how = {};
  how.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  Fd target(static_cast<int>(syscall(SYS_openat2, proc, name, &how, sizeof how)));
  if (!target && errno != ENOENT) return Error::system(std::string("open /proc/") + name);
  return target;
}

Result<void> write_protect(int proc, const char* name) {
  ATOLL_TRY(Fd target, open_beneath(proc, name));
  if (!target) return {};
  ATOLL_TRY(Fd mount, linux::clone_mount(target.get(), ""));
  ATOLL_TRY_VOID(linux::set_attributes(mount.get(), {.set = MOUNT_ATTR_RDONLY}));
  return linux::attach_mount(mount.get(), target.get());
}

Result<void> mask(int proc, int masks, const char* name) {
  ATOLL_TRY(Fd target, open_beneath(proc, name));
  if (!target) return {};
  struct stat status;
  if (fstat(target.get(), &status) != 0) return Error::system(std::string("stat /proc/") + name);
  ATOLL_TRY(Fd mount,
            linux::clone_mount(masks, S_ISDIR(status.st_mode) ? kEmptyDirectory : kEmptyFile));
  return linux::attach_mount(mount.get(), target.get());
}

// Login shells set a PATH of their own, and /usr/local/bin is in each of them.
Result<void> make_links(int masks) {
  for (const char* name : {"links", "links/usr", "links/usr/local", "links/usr/local/bin"})
    if (mkdirat(masks, name, 0755) != 0) return Error::system(std::string("mkdir ") + name);
  if (symlinkat("/run/atoll/bin/sudo", masks, "links/usr/local/bin/sudo") != 0)
    return Error::system("link sudo");
  return {};
}

}  // namespace

Result<void> mount_masks(Host& host) {
  std::string target = host.run_dir + "/masks";
  unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  ATOLL_TRY(host.masks, linux::mount_tmpfs(target, flags, "mode=0555,size=4k,nr_inodes=16"));
  ATOLL_TRY(Fd file, open_at(host.masks.get(), kEmptyFile, O_WRONLY | O_CREAT | O_EXCL, 0444));
  if (mkdirat(host.masks.get(), kEmptyDirectory, 0555) != 0)
    return Error::system("mkdir in " + target);
  ATOLL_TRY_VOID(make_links(host.masks.get()));
  file.reset();  // open for writing, it would forbid what follows
  return linux::make_tmpfs_read_only(target, flags);
}

Result<void> mask_proc(int proc, int masks) {
  struct statfs status;
  if (fstatfs(proc, &status) != 0) return Error::system("statfs /proc");
  if (status.f_type != PROC_SUPER_MAGIC) return Error::from_errno("/proc is not procfs", EXDEV);
  for (const char* name : kReadOnly) ATOLL_TRY_VOID(write_protect(proc, name));
  for (const char* name : kMasked) ATOLL_TRY_VOID(mask(proc, masks, name));
  return {};
}

Result<Fd> clone_empty_directory(int masks) { return linux::clone_mount(masks, kEmptyDirectory); }

}  // namespace atl::warden
