#include "linux/sandbox_root.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "linux/masks.h"
#include "linux/mounts.h"
#include "linux/open_resolved.h"
#include "linux/unix_socket.h"

namespace atl::linux {
namespace {

constexpr uint64_t kNoSuidNoDev = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
// Of the 3,072 that the kernel gives to all sandboxes together.
constexpr const char* kMaxTerminals = "64";
constexpr int kSudoBacklog = 64;
// An access list of such a file is charged to nobody: see docs/internals/kernel-memory.md.
constexpr const char* kMaxSharedFiles = "8192";
constexpr const char* kMaxRunFiles = "4096";

}  // namespace

Result<void> attach_devices(int root, int devices) {
  ATOLL_TRY(Fd dev, open_mount_target(root, "dev"));
  ATOLL_TRY_VOID(attach_mount(devices, dev.get()));
  ATOLL_TRY(
      Fd pts,
      make_mount("devpts",
                 {{"gid", "5"}, {"mode", "0620"}, {"ptmxmode", "0666"}, {"max", kMaxTerminals}},
                 MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC));
  ATOLL_TRY_VOID(attach_mount_at(pts.get(), devices, "pts"));
  ATOLL_TRY(Fd shm,
            make_mount("tmpfs", {{"size", "64m"}, {"nr_inodes", kMaxSharedFiles}, {"mode", "1777"}},
                       kNoSuidNoDev));
  ATOLL_TRY_VOID(attach_mount_at(shm.get(), devices, "shm"));
  if (fchmodat(shm.get(), ".", 01777, 0) != 0) return Error::system("chmod /dev/shm");
  return {};
}

Result<Fd> attach_proc(int root) {
  ATOLL_TRY(Fd target, open_mount_target(root, "proc"));
  ATOLL_TRY(Fd proc, make_mount("proc", {}, kNoSuidNoDev | MOUNT_ATTR_NOEXEC));
  ATOLL_TRY_VOID(attach_mount(proc.get(), target.get()));
  return proc;
}

Result<Fd> attach_run(int root, int tools) {
  ATOLL_TRY(Fd target, open_mount_target(root, "run"));
  ATOLL_TRY(Fd run,
            make_mount("tmpfs", {{"size", "16m"}, {"nr_inodes", kMaxRunFiles}, {"mode", "0755"}},
                       kNoSuidNoDev));
  ATOLL_TRY_VOID(attach_mount(run.get(), target.get()));
  for (const char* name : {"atoll", "atoll/bin"})
    if (mkdirat(run.get(), name, 0755) != 0)
      return Error::system(std::string("mkdir /run/") + name);
  ATOLL_TRY(Fd run_atoll, open_at(run.get(), "atoll", O_RDONLY | O_DIRECTORY));
  ATOLL_TRY_VOID(attach_mount_at(tools, run_atoll.get(), "bin"));
  return run_atoll;
}

Result<void> mask_kernel_files(int root, int proc, const AttachedMasks& masks) {
  ATOLL_TRY_VOID(mask_proc(proc, masks.path, masks.boot_id));
  ATOLL_TRY(Fd target, open_mount_target(root, "sys"));
  ATOLL_TRY(Fd sys, clone_empty_directory(masks.mount));
  return attach_mount(sys.get(), target.get());
}

// An image without the file has that of the lowest layer. A link to nowhere is left as it is.
Result<void> attach_resolver(int root, const AttachedMasks& masks) {
  uint64_t resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
  Fd target = open_resolved(root, "etc/resolv.conf", {.flags = O_PATH, .resolve = resolve});
  struct stat status;
  if (!target || fstat(target.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  ATOLL_TRY(Fd file, clone_mount(AT_FDCWD, masks.path + "/" + kResolverFile));
  return attach_mount(file.get(), target.get());
}

// An image without the directory has that of the lowest layer.
Result<void> attach_toolbox(int root, int toolbox) {
  auto target = open_mount_target(root, "opt/atoll");
  int why = target ? 0 : target.error().system_errno();
  if (why == ENOENT || why == ENOTDIR || why == ELOOP) return {};
  if (!target) return std::move(target).error();
  return attach_mount(toolbox, target->get());
}

Result<void> pivot_into(int root) {
  if (fchdir(root) != 0) return Error::system("chdir to the new root");
  if (syscall(SYS_pivot_root, ".", ".") != 0) return Error::system("pivot_root");
  // The old root now lies over the new one at ".".
  if (umount2(".", MNT_DETACH) != 0) return Error::system("detach the old root");
  ATOLL_TRY_VOID(check_nothing_above("."));
  if (chdir("/") != 0) return Error::system("chdir /");
  return {};
}

Result<Fd> listen_for_sudo(int run_atoll) {
  ATOLL_TRY(Fd sudo, listen_at(run_atoll, "sudo", SOCK_SEQPACKET, kSudoBacklog));
  if (fchmodat(run_atoll, "sudo", 0666, 0) != 0) return Error::system("chmod /run/atoll/sudo");
  return sudo;
}

}  // namespace atl::linux
