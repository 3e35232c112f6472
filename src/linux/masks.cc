#include "linux/masks.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/file.h"
#include "linux/filled_tmpfs.h"
#include "linux/mounts.h"

namespace atl::linux {
namespace {

constexpr const char* kEmptyFile = "file";
constexpr const char* kEmptyDirectory = "directory";

constexpr const char* kSettings = "settings";

// Beside processes and links, what of /proc is not covered: what tools commonly read. `sys` is
// covered by the settings. Whatever else this kernel has, now or in a later version, is.
constexpr std::string_view kShown[] = {"cpuinfo", "filesystems", "loadavg", "meminfo", "stat",
                                       "sys",     "sysvipc",     "uptime",  "version"};

// Settings that programs read, as they were when the masks were made.
constexpr std::string_view kCopiedSettings[] = {"crypto/fips_enabled",
                                                "fs/file-max",
                                                "fs/inotify/max_queued_events",
                                                "fs/inotify/max_user_instances",
                                                "fs/inotify/max_user_watches",
                                                "fs/mqueue/msg_max",
                                                "fs/mqueue/msgsize_max",
                                                "fs/mqueue/queues_max",
                                                "fs/nr_open",
                                                "fs/pipe-max-size",
                                                "fs/pipe-user-pages-hard",
                                                "fs/pipe-user-pages-soft",
                                                "fs/protected_hardlinks",
                                                "fs/protected_symlinks",
                                                "fs/suid_dumpable",
                                                "kernel/arch",
                                                "kernel/cap_last_cap",
                                                "kernel/io_uring_disabled",
                                                "kernel/kptr_restrict",
                                                "kernel/ngroups_max",
                                                "kernel/osrelease",
                                                "kernel/ostype",
                                                "kernel/overflowgid",
                                                "kernel/overflowuid",
                                                "kernel/perf_event_paranoid",
                                                "kernel/pid_max",
                                                "kernel/random/entropy_avail",
                                                "kernel/random/poolsize",
                                                "kernel/randomize_va_space",
                                                "kernel/seccomp/actions_avail",
                                                "kernel/threads-max",
                                                "kernel/unprivileged_bpf_disabled",
                                                "kernel/unprivileged_userns_clone",
                                                "kernel/version",
                                                "kernel/yama/ptrace_scope",
                                                "user/max_user_namespaces",
                                                "vm/max_map_count",
                                                "vm/mmap_min_addr",
                                                "vm/mmap_rnd_bits",
                                                "vm/overcommit_kbytes",
                                                "vm/overcommit_memory",
                                                "vm/overcommit_ratio",
                                                "vm/swappiness"};

// Those that are the sandbox's own, or another each time.
constexpr const char* kOwnSettings[] = {"net", "kernel/domainname", "kernel/hostname",
                                        "kernel/random/boot_id", "kernel/random/uuid"};

std::string below_sys(std::string_view name) { return "sys/" + std::string(name); }

bool is_shown(std::string_view name) {
  if (name[0] == '.' || (name[0] >= '0' && name[0] <= '9')) return true;
  return std::find(std::begin(kShown), std::end(kShown), name) != std::end(kShown);
}

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};
using Directory = std::unique_ptr<DIR, CloseDirectory>;

// One call each, by a name relative to the root of procfs: the targets are the kernel's own, which
// nobody can replace by a link. What is gone meanwhile is no error. A directory where a file is
// expected is (ENOTDIR), as is the reverse.
Result<void> bind_over(const std::string& source, const char* name) {
  if (mount(source.c_str(), name, nullptr, MS_BIND, nullptr) == 0 || errno == ENOENT) return {};
  return Error::system(std::string("cover /proc/") + name);
}

// Links of procfs lead to what a process may see of itself.
Result<void> cover_what_is_not_shown(int proc, const std::string& masks) {
  ATOLL_TRY(Fd listed, open_at(proc, ".", O_RDONLY | O_DIRECTORY));
  Directory directory(fdopendir(listed.get()));
  if (!directory) return Error::system("list /proc");
  (void)listed.release();
  std::string file = masks + "/" + kEmptyFile, empty = masks + "/" + kEmptyDirectory;
  errno = 0;
  while (const dirent* entry = readdir(directory.get())) {
    if (entry->d_type == DT_LNK || is_shown(entry->d_name)) continue;
    ATOLL_TRY_VOID(bind_over(entry->d_type == DT_DIR ? empty : file, entry->d_name));
    errno = 0;
  }
  return errno == 0 ? Result<void>() : Error::system("list /proc");
}

// Cloned before they are covered.
Result<void> cover_settings(int proc, const std::string& masks, const std::string& boot_id) {
  std::array<Fd, std::size(kOwnSettings)> own;
  for (size_t i = 0; i < own.size(); ++i) {
    std::string name = below_sys(kOwnSettings[i]);
    bool is_given = !boot_id.empty() && name.ends_with("/boot_id");
    auto cloned = clone_mount(is_given ? AT_FDCWD : proc, is_given ? boot_id : name);
    if (!cloned && cloned.error().code() == Code::kNotFound) continue;
    if (!cloned) return std::move(cloned).error();
    own[i] = std::move(*cloned);
    ATOLL_TRY_VOID(set_attributes(own[i].get(), {.set = MOUNT_ATTR_RDONLY}));
  }
  ATOLL_TRY_VOID(bind_over(masks + "/" + kSettings, "sys"));
  for (size_t i = 0; i < own.size(); ++i)
    if (own[i]) ATOLL_TRY_VOID(attach_mount_at(own[i].get(), proc, below_sys(kOwnSettings[i])));
  return {};
}

Result<void> make_parents(int root, std::string_view path) {
  for (size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1)) {
    std::string parent(path.substr(0, slash));
    if (mkdirat(root, parent.c_str(), 0755) != 0 && errno != EEXIST)
      return Error::system("mkdir " + parent);
  }
  return {};
}

Result<void> put_setting(int settings, std::string_view name, std::string_view text) {
  ATOLL_TRY_VOID(make_parents(settings, name));
  ATOLL_TRY(Fd file, open_at(settings, std::string(name), O_WRONLY | O_CREAT | O_EXCL, 0444));
  return write_all(file.get(), text);
}

// What this kernel does not have, or does not show, is left out.
Result<void> copy_settings(int masks) {
  if (mkdirat(masks, kSettings, 0755) != 0) return Error::system("mkdir settings");
  ATOLL_TRY(Fd settings, open_at(masks, kSettings, O_RDONLY | O_DIRECTORY));
  for (std::string_view name : kCopiedSettings)
    if (auto text = read_file("/proc/" + below_sys(name)); text)
      ATOLL_TRY_VOID(put_setting(settings.get(), name, *text));
  for (std::string_view name : kOwnSettings)
    if (name != "net") ATOLL_TRY_VOID(put_setting(settings.get(), name, ""));
  if (mkdirat(settings.get(), "net", 0555) != 0) return Error::system("mkdir net");
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
  ATOLL_TRY(Fd masks, mount_tmpfs(target, flags, "mode=0555,size=512k,nr_inodes=128"));
  ATOLL_TRY(Fd file, open_at(masks.get(), kEmptyFile, O_WRONLY | O_CREAT | O_EXCL, 0444));
  if (mkdirat(masks.get(), kEmptyDirectory, 0555) != 0) return Error::system("mkdir in " + target);
  ATOLL_TRY_VOID(copy_settings(masks.get()));
  ATOLL_TRY_VOID(make_links(masks.get(), resolver));
  file.reset();  // open for writing, it would forbid what follows
  ATOLL_TRY_VOID(make_tmpfs_read_only(target, flags));
  return masks;
}

Result<void> mask_proc(int proc, const std::string& masks, const std::string& boot_id) {
  struct statfs status;
  if (fstatfs(proc, &status) != 0) return Error::system("statfs /proc");
  if (status.f_type != PROC_SUPER_MAGIC) return Error::from_errno("/proc is not procfs", EXDEV);
  if (fchdir(proc) != 0) return Error::system("chdir to /proc");
  ATOLL_TRY_VOID(cover_what_is_not_shown(proc, masks));
  return cover_settings(proc, masks, boot_id);
}

Result<Fd> clone_empty_directory(int masks) { return clone_mount(masks, kEmptyDirectory); }

}  // namespace atl::linux
