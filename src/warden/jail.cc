#include "warden/jail.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/openat2.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "agent/birth_record.h"
#include "base/file.h"
#include "linux/capabilities.h"
#include "linux/mounts.h"
#include "linux/network.h"
#include "linux/signals.h"
#include "linux/unix_socket.h"
#include "warden/masks.h"

namespace atl::warden {
namespace {

constexpr uint64_t kNoSuidNoDev = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
// The agent raises its own limit to the hard one, for the pipes of its execs.
constexpr rlim_t kAgentOpenFiles = 4096;
// The kernel's own default: enough for programs that lock keys into memory. Locked pages count
// against the memory limit like all others.
constexpr rlim_t kLockedBytes = 8 << 20;
constexpr rlim_t kMessageQueueBytes = 819'200;  // the kernel's default too
constexpr rlim_t kPendingSignalsPerProcess = 16;
constexpr int kSudoBacklog = 64;
// Of the 3,072 that the kernel gives to all sandboxes together.
constexpr const char* kMaxTerminals = "64";
constexpr int kFirstTemporaryFd = 16;

// What the agent needs to start programs as any user inside and to keep them off its own memory.
constexpr uint64_t kAgentCapabilities = linux::capability_mask(
    {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_SETUID, CAP_SETGID, CAP_KILL,
     CAP_NET_BIND_SERVICE, CAP_SYS_CHROOT, CAP_SETPCAP, CAP_SYS_PTRACE});

// Soft and hard alike; what is already lower stays, for raising it needs a capability.
Result<void> lower_limit(__rlimit_resource_t resource, rlim_t most) {
  rlimit limit;
  if (getrlimit(resource, &limit) != 0) return Error::system("read a limit");
  limit.rlim_max = std::min(limit.rlim_max, most);
  limit.rlim_cur = std::min(limit.rlim_cur, limit.rlim_max);
  if (setrlimit(resource, &limit) != 0) return Error::system("set a limit");
  return {};
}

Result<void> set_limits(unsigned pids) {
  // No real-time priority and none above the ordinary one: both would take from other sandboxes.
  for (auto resource : {RLIMIT_RTPRIO, RLIMIT_NICE}) ATOLL_TRY_VOID(lower_limit(resource, 0));
  ATOLL_TRY_VOID(lower_limit(RLIMIT_MEMLOCK, kLockedBytes));
  ATOLL_TRY_VOID(lower_limit(RLIMIT_MSGQUEUE, kMessageQueueBytes));
  ATOLL_TRY_VOID(lower_limit(RLIMIT_SIGPENDING, kPendingSignalsPerProcess * pids));
  // 0 would not stop a core_pattern that is a pipe.
  rlimit core = {.rlim_cur = 1, .rlim_max = 1};
  if (setrlimit(RLIMIT_CORE, &core) != 0) return Error::system("limit core files");
  return {};
}

// The last step before the execve: descriptors are moved to numbers that it may forbid.
Result<void> limit_open_files(rlim_t asked) {
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return Error::system("read the limit of open files");
  if (files.rlim_max < asked) return Error::from_errno("limit open files", EPERM);
  files.rlim_max = std::min(files.rlim_max, std::max(asked, kAgentOpenFiles));
  files.rlim_cur = asked;
  if (setrlimit(RLIMIT_NOFILE, &files) != 0) return Error::system("limit open files");
  return {};
}

Result<void> drop_capabilities() {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Error::system("set no_new_privs");
  ATOLL_TRY_VOID(linux::limit_bounding_set(kAgentCapabilities));
  // execve as uid 0 gives back the bounding set, so that is what makes it last.
  return linux::set_capabilities(
      {.effective = kAgentCapabilities, .permitted = kAgentCapabilities});
}

Result<void> move_out_of_the_way(int& fd) {
  fd = fcntl(fd, F_DUPFD_CLOEXEC, kFirstTemporaryFd);
  if (fd < 0) return Error::system("duplicate a descriptor");
  return {};
}

Result<void> put_at(int fd, int number) {
  if (dup2(fd, number) != number) return Error::system("place a descriptor");
  return {};
}

// `first` and above are closed by execve, not now: the socket must live until then to tell the
// helper.
Result<void> finish_fds(unsigned first) {
  ATOLL_TRY(Fd null, open_file("/dev/null", O_RDWR));
  for (int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    ATOLL_TRY_VOID(put_at(null.get(), number));
  if (close_range(first, ~0u, CLOSE_RANGE_CLOEXEC) != 0) return Error::system("close_range");
  return {};
}

Result<void> make_world_writable_sticky(int directory) {
  if (fchmodat(directory, ".", 01777, 0) != 0) return Error::system("chmod /dev/shm");
  return {};
}

Result<void> make_scratch_directory(int scratch, const char* name) {
  if (mkdirat(scratch, name, 0700) != 0) return Error::system(std::string("mkdir ") + name);
  return {};
}

// ".." of a root stays there but enters what is mounted over it: the way back to the host, if any.
Result<void> check_nothing_above(const char* root) {
  struct statx here, above;
  std::string parent = std::string(root) + "/..";
  if (statx(AT_FDCWD, root, 0, STATX_MNT_ID, &here) != 0 ||
      statx(AT_FDCWD, parent.c_str(), 0, STATX_MNT_ID, &above) != 0)
    return Error::system("statx the new root");
  if (here.stx_mnt_id != above.stx_mnt_id)
    return Error::from_errno("something is mounted over the new root", EBUSY);
  return {};
}

Result<void> execute(int binary, const char* first, const char* second) {
  const char* arguments[] = {first, second, nullptr};
  const char* environment[] = {nullptr};
  syscall(SYS_execveat, binary, "", arguments, environment, AT_EMPTY_PATH);
  return Error::system("execute the agent");
}

}  // namespace

// The jail's table of contents. The order matters:
// - the spawner is forked first, so that its slow move into the v1 groups goes on beside all the
// rest;
// - the process must be root of its user namespace before it makes files or mounts;
// - /proc can be mounted only while the host's is still visible, so before the pivot; what covers
//   its files is cloned from the scratch mount, which goes with the pivot;
// - capabilities go last, for every step before needs them.
const Jail::JailStep Jail::kSteps[] = {
    {Step::kSpawner, &Jail::fork_spawner},
    {Step::kNamespaces, &Jail::receive_trees},
    {Step::kNamespaces, &Jail::become_root},
    {Step::kNamespaces, &Jail::leave_the_host},
    {Step::kRoot, &Jail::build_root},
    {Step::kDevices, &Jail::mount_devices},
    {Step::kProc, &Jail::mount_proc_and_run},
    {Step::kMasks, &Jail::mask_kernel_files},
    {Step::kPivot, &Jail::pivot},
    {Step::kNetwork, &Jail::raise_loopback},
    {Step::kSpawner, &Jail::release_spawner},
    {Step::kCapabilities, &Jail::confine},
    {Step::kAgent, &Jail::execute_agent},
};

void Jail::run() {
  Progress& progress = *plan_.progress;
  close(plan_.helper_end);  // or the death of the helper would go unnoticed
  for (const JailStep& step : kSteps) {
    progress.step = step.step;
    StepTimer timer(progress, step.step);
    Result<void> result = step.step == plan_.fail_at
                              ? Error::from_errno("injected failure", ECANCELED)
                              : (this->*step.call)();
    if (result) continue;
    int number = result.error().system_errno();
    progress.failed_step = step.step;
    progress.failed_errno = number != 0 ? number : EPROTO;
    _exit(1);
  }
  _exit(1);
}

Result<void> Jail::fork_spawner() {
  if (plan_.spawner == Spawner::kNone) return {};
  ATOLL_TRY(auto pair, linux::make_socket_pair(SOCK_SEQPACKET));
  pid_t child = fork();
  if (child < 0) return Error::system("fork the spawner");
  spawner_ = std::move(pair.ours);
  if (child == 0) {
    spawner_ = std::move(pair.theirs);
    run_spawner(pair.ours.release());
  }
  return {};
}

Result<void> Jail::receive_trees() {
  ATOLL_TRY(auto message, linux::receive_byte(plan_.sync, -1));
  if (!message) return Error::from_errno("the helper is gone", EPIPE);
  if (message->byte != kTrees || !message->fds[4])
    return Error::from_errno("unexpected message from the helper", EPROTO);
  image_ = std::move(message->fds[0]);
  layer_ = std::move(message->fds[1]);
  devices_ = std::move(message->fds[2]);
  masks_ = std::move(message->fds[3]);
  tools_ = std::move(message->fds[4]);
  return tell_spawner(kIdsMapped);
}

Result<void> Jail::become_root() {
  if (setgroups(0, nullptr) != 0) return Error::system("setgroups");
  if (setresgid(0, 0, 0) != 0) return Error::system("setresgid");
  if (setresuid(0, 0, 0) != 0) return Error::system("setresuid");
  umask(0022);
  return {};
}

Result<void> Jail::leave_the_host() {
  ATOLL_TRY_VOID(linux::make_all_mounts_private());
  if (sethostname(plan_.host_name.data(), plan_.host_name.size()) != 0)
    return Error::system("sethostname");
  return {};
}

Result<void> Jail::build_root() {
  // Over a directory that every host has and nobody needs here; the pivot takes it away with the
  // rest.
  ATOLL_TRY(Fd scratch, linux::make_mount("tmpfs", {{"size", "64k"}, {"mode", "0700"}},
                                          kNoSuidNoDev | MOUNT_ATTR_NOEXEC));
  ATOLL_TRY_VOID(linux::attach_mount_at(scratch.get(), AT_FDCWD, "/sys"));
  for (const char* name : {"image", "layer", "root", "groups", "masks"})
    ATOLL_TRY_VOID(make_scratch_directory(scratch.get(), name));
  ATOLL_TRY_VOID(linux::attach_mount_at(image_.get(), scratch.get(), "image"));
  ATOLL_TRY_VOID(linux::attach_mount_at(layer_.get(), scratch.get(), "layer"));
  // Cloned from, which a mount that is attached nowhere does not allow.
  ATOLL_TRY_VOID(linux::attach_mount_at(masks_.get(), scratch.get(), "masks"));
  // The agent's mount of <id>/run goes with the scratch mount and lives on in its descriptor only.
  // Left detached, it would be unmounted by the exit of the isolate, at the price of one more grace
  // period.
  ATOLL_TRY_VOID(linux::attach_mount_at(plan_.cgroup, scratch.get(), "groups"));
  if (fchdir(scratch.get()) != 0) return Error::system("chdir to the scratch mount");
  // The links lie below the image, which so stays as it is and may have its own of that name.
  // `volatile`: no sync of the whole pool when the overlay goes. A layer does not outlive its
  // isolate.
  ATOLL_TRY(root_, linux::make_mount("overlay",
                                     {{"lowerdir", "image:masks/links"},
                                      {"upperdir", "layer/upper"},
                                      {"workdir", "layer/work"},
                                      {"userxattr", ""},
                                      {"volatile", ""}},
                                     kNoSuidNoDev));
  return linux::attach_mount_at(root_.get(), scratch.get(), "root");
}

Result<Fd> Jail::open_target(const char* path) {
  open_how how = {};
  how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  Fd target(static_cast<int>(syscall(SYS_openat2, root_.get(), path, &how, sizeof how)));
  if (!target) return Error::system(std::string("open mount target ") + path);
  return target;
}

Result<void> Jail::mount_devices() {
  ATOLL_TRY(Fd dev, open_target("dev"));
  ATOLL_TRY_VOID(linux::attach_mount(devices_.get(), dev.get()));
  ATOLL_TRY(
      Fd pts,
      linux::make_mount(
          "devpts", {{"gid", "5"}, {"mode", "0620"}, {"ptmxmode", "0666"}, {"max", kMaxTerminals}},
          MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC));
  ATOLL_TRY_VOID(linux::attach_mount_at(pts.get(), devices_.get(), "pts"));
  ATOLL_TRY(Fd shm,
            linux::make_mount("tmpfs", {{"size", "64m"}, {"nr_inodes", "65536"}, {"mode", "1777"}},
                              kNoSuidNoDev));
  ATOLL_TRY_VOID(linux::attach_mount_at(shm.get(), devices_.get(), "shm"));
  return make_world_writable_sticky(shm.get());
}

Result<void> Jail::mount_proc_and_run() {
  ATOLL_TRY(Fd proc_target, open_target("proc"));
  ATOLL_TRY(proc_, linux::make_mount("proc", {}, kNoSuidNoDev | MOUNT_ATTR_NOEXEC));
  ATOLL_TRY_VOID(linux::attach_mount(proc_.get(), proc_target.get()));
  ATOLL_TRY(Fd run_target, open_target("run"));
  ATOLL_TRY(Fd run,
            linux::make_mount("tmpfs", {{"size", "16m"}, {"nr_inodes", "16384"}, {"mode", "0755"}},
                              kNoSuidNoDev));
  ATOLL_TRY_VOID(linux::attach_mount(run.get(), run_target.get()));
  return fill_run(run.get());
}

// In /run, because it is new and empty: no image can have put anything in the way, and the layer
// stays as it is.
Result<void> Jail::fill_run(int run) {
  for (const char* name : {"atoll", "atoll/bin"})
    if (mkdirat(run, name, 0755) != 0) return Error::system(std::string("mkdir /run/") + name);
  ATOLL_TRY(Fd atoll, open_at(run, "atoll", O_RDONLY | O_DIRECTORY));
  ATOLL_TRY_VOID(linux::attach_mount_at(tools_.get(), atoll.get(), "bin"));
  ATOLL_TRY(sudo_, linux::listen_at(atoll.get(), "sudo", SOCK_SEQPACKET, kSudoBacklog));
  if (fchmodat(atoll.get(), "sudo", 0666, 0) != 0) return Error::system("chmod /run/atoll/sudo");
  return {};
}

Result<void> Jail::mask_kernel_files() {
  ATOLL_TRY_VOID(mask_proc(proc_.get(), masks_.get()));
  ATOLL_TRY(Fd sys_target, open_target("sys"));
  ATOLL_TRY(Fd sys, clone_empty_directory(masks_.get()));
  return linux::attach_mount(sys.get(), sys_target.get());
}

Result<void> Jail::pivot() {
  if (fchdir(root_.get()) != 0) return Error::system("chdir to the new root");
  if (syscall(SYS_pivot_root, ".", ".") != 0) return Error::system("pivot_root");
  // The old root now lies over the new one at ".".
  if (umount2(".", MNT_DETACH) != 0) return Error::system("detach the old root");
  ATOLL_TRY_VOID(check_nothing_above("."));
  if (chdir("/") != 0) return Error::system("chdir /");
  return {};
}

Result<void> Jail::raise_loopback() { return linux::raise_interface("lo"); }

Result<void> Jail::tell_spawner(char message) {
  if (plan_.spawner == Spawner::kNone) return {};
  return linux::send_byte(spawner_.get(), message);
}

Result<void> Jail::release_spawner() { return tell_spawner(kRootReady); }

Result<void> Jail::confine() {
  setsid();  // fails only for a process that leads a group already, which does no harm
  ATOLL_TRY_VOID(set_limits(plan_.pids));
  ATOLL_TRY_VOID(linux::reset_signals());
  return drop_capabilities();
}

Result<void> Jail::execute_agent() {
  int spawner = spawner_.get();
  int sudo = sudo_.get();
  for (int* fd : {&sudo, &plan_.sync, &plan_.agent_binary, &plan_.listener, &plan_.cgroup,
                  &plan_.birth, &plan_.probe})
    ATOLL_TRY_VOID(move_out_of_the_way(*fd));
  if (spawner >= 0) ATOLL_TRY_VOID(move_out_of_the_way(spawner));
  for (int& fd : plan_.counters)
    if (fd >= 0) ATOLL_TRY_VOID(move_out_of_the_way(fd));
  // What is not placed below must not be there: the helper's own descriptors have these numbers
  // too.
  if (close_range(STDERR_FILENO + 1, agent::kLastBirthFd, 0) != 0)
    return Error::system("close_range");
  ATOLL_TRY_VOID(put_at(plan_.listener, agent::kListenerFd));
  ATOLL_TRY_VOID(put_at(plan_.cgroup, agent::kCgroupFd));
  ATOLL_TRY_VOID(put_at(plan_.birth, agent::kBirthFd));
  if (spawner >= 0) ATOLL_TRY_VOID(put_at(spawner, agent::kSpawnerFd));
  ATOLL_TRY_VOID(put_at(plan_.probe, agent::kProbeFd));
  for (size_t i = 0; i < plan_.counters.size(); ++i) {
    int number = agent::kMemoryEventsFd + static_cast<int>(i);
    if (plan_.counters[i] >= 0) ATOLL_TRY_VOID(put_at(plan_.counters[i], number));
  }
  ATOLL_TRY_VOID(put_at(sudo, agent::kSudoFd));
  ATOLL_TRY_VOID(finish_fds(agent::kLastBirthFd + 1));
  ATOLL_TRY_VOID(limit_open_files(plan_.open_files));
  return execute(plan_.agent_binary, "atoll-agent", nullptr);
}

void Jail::run_spawner(int parent_end) {
  close(parent_end);
  Result<void> result = execute_spawner();
  // The jail may have failed first and taken us down; its reason is the one to keep.
  Progress& progress = *plan_.progress;
  if (!result && progress.failed_errno == 0) {
    int number = result.error().system_errno();
    progress.failed_step = Step::kSpawner;
    progress.failed_errno = number != 0 ? number : EPROTO;
  }
  _exit(1);
}

Result<void> Jail::expect(int socket, char wanted) {
  ATOLL_TRY(auto message, linux::receive_byte(socket, -1));
  if (!message) return Error::from_errno("the other side is gone", EPIPE);
  if (message->byte != wanted) return Error::from_errno("unexpected message", EPROTO);
  return {};
}

// Everything it can do alone it does while the helper is busy moving it: that takes longest.
Result<void> Jail::execute_spawner() {
  ATOLL_TRY_VOID(linux::send_byte(plan_.sync, kSpawnerIsHere));
  ATOLL_TRY_VOID(expect(spawner_.get(), kIdsMapped));
  ATOLL_TRY_VOID(become_root());
  ATOLL_TRY_VOID(confine());
  ATOLL_TRY_VOID(expect(spawner_.get(), kRootReady));
  // pivot_root moved our root along with the jail's, but not a working directory elsewhere.
  if (chdir("/") != 0) return Error::system("chdir /");
  int socket = spawner_.get();
  for (int* fd : {&plan_.sync, &plan_.agent_binary, &socket})
    ATOLL_TRY_VOID(move_out_of_the_way(*fd));
  ATOLL_TRY_VOID(put_at(socket, STDERR_FILENO + 1));
  ATOLL_TRY_VOID(finish_fds(STDERR_FILENO + 2));
  ATOLL_TRY_VOID(limit_open_files(plan_.open_files));
  // On the socket that the jail uses too; the jail has long read the only message meant for it.
  ATOLL_TRY_VOID(expect(plan_.sync, kSpawnerEntered));
  return execute(plan_.agent_binary, "atoll-agent", "spawner");
}

}  // namespace atl::warden
