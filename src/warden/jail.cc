#include "warden/jail.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "agent/birth_record.h"
#include "base/file.h"
#include "linux/boot_id.h"
#include "linux/confinement.h"
#include "linux/mounts.h"
#include "linux/resource_limits.h"
#include "linux/sandbox_root.h"
#include "linux/unix_socket.h"

namespace atl::warden {
namespace {

constexpr uint64_t kNoSuidNoDev = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
// The agent raises its own limit to the hard one, for the pipes of its execs.
constexpr rlim_t kAgentOpenFiles = 4096;
// Over a directory that every host has and nobody needs here; the pivot takes it away with the
// rest.
constexpr const char* kScratch = "/sys";
constexpr const char* kMasks = "/sys/masks";
constexpr const char* kBootIdFile = "/sys/boot_id";
constexpr size_t kTreesOfAll = 5;  // then a disk, those of volumes, and the toolbox, as there are
static_assert(kTreesOfAll + linux::kMaxVolumes + 2 <= linux::kMaxSentFds);

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
    {Step::kMasks, &Jail::name_the_resolver},
    {Step::kVolumes, &Jail::mount_volumes},
    {Step::kPivot, &Jail::pivot},
    {Step::kNetwork, &Jail::join_network},
    {Step::kNetwork, &Jail::listen_for_sudo},
    {Step::kSpawner, &Jail::release_spawner},
    {Step::kCapabilities, &Jail::confine},
    {Step::kAgent, &Jail::execute_agent},
};

void Jail::run() {
  Progress& progress = *plan_.progress;
  close(plan_.helper_end);      // or the death of the helper would go unnoticed,
  close(plan_.network_sender);  // or that of the midwife
  close(plan_.sockets_sender);
  for (const JailStep& step : kSteps) {
    progress.step = step.step;
    StepTimer timer(progress, step.step);
    // The network is made by the midwife and fails with her.
    bool injected = step.step == plan_.fail_at && step.step != Step::kNetwork;
    Result<void> result =
        injected ? Error::from_errno("injected failure", ECANCELED) : (this->*step.call)();
    if (result) continue;
    progress.note_failure(step.step, result.error());
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
  size_t least = kTreesOfAll + plan_.volumes->count + (plan_.wall == Wall::kJail ? 0 : 1);
  if (message->byte != kTrees || !message->fds[least - 1])
    return Error::from_errno("unexpected message from the helper", EPROTO);
  image_ = std::move(message->fds[0]);
  layer_ = std::move(message->fds[1]);
  devices_ = std::move(message->fds[2]);
  masks_ = std::move(message->fds[3]);
  tools_ = std::move(message->fds[4]);
  size_t next = kTreesOfAll;
  if (plan_.wall != Wall::kJail) disk_ = std::move(message->fds[next++]);
  while (volumes_.size() < plan_.volumes->count)
    volumes_.push_back(std::move(message->fds[next++]));
  toolbox_ = std::move(message->fds[next]);
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
  ATOLL_TRY(Fd scratch, linux::make_mount("tmpfs", {{"size", "64k"}, {"mode", "0700"}},
                                          kNoSuidNoDev | MOUNT_ATTR_NOEXEC));
  ATOLL_TRY_VOID(linux::attach_mount_at(scratch.get(), AT_FDCWD, kScratch));
  for (const char* name : {"image", "layer", "root", "groups", "masks"})
    if (mkdirat(scratch.get(), name, 0700) != 0) return Error::system(std::string("mkdir ") + name);
  ATOLL_TRY_VOID(linux::attach_mount_at(image_.get(), scratch.get(), "image"));
  ATOLL_TRY_VOID(linux::attach_mount_at(layer_.get(), scratch.get(), "layer"));
  ATOLL_TRY_VOID(linux::draw_boot_id(scratch.get()));
  // Cloned from, which a mount that is attached nowhere does not allow.
  ATOLL_TRY_VOID(linux::attach_mount_at(masks_.get(), scratch.get(), "masks"));
  // The agent's mount of <id>/run goes with the scratch mount and lives on in its descriptor only.
  // Left detached, it would be unmounted by the exit of the isolate, at the price of one more grace
  // period.
  ATOLL_TRY_VOID(linux::attach_mount_at(plan_.cgroup, scratch.get(), "groups"));
  if (fchdir(scratch.get()) != 0) return Error::system("chdir to the scratch mount");
  // The links lie below the image, which so stays as it is and may have its own of that name.
  // `volatile`: no sync of the whole pool when the overlay goes, for a layer that does not outlive
  // its isolate.
  ATOLL_TRY(root_, linux::make_mount("overlay",
                                     {{"lowerdir", "image:masks/links"},
                                      {"upperdir", "layer/upper"},
                                      {"workdir", "layer/work"},
                                      {"userxattr", ""},
                                      {plan_.keeps_layer ? "userxattr" : "volatile", ""}},
                                     kNoSuidNoDev));
  ATOLL_TRY_VOID(linux::attach_mount_at(root_.get(), scratch.get(), "root"));
  if (plan_.wall != Wall::kJail || !toolbox_) return {};
  return linux::attach_toolbox(root_.get(), toolbox_.get());
}

Result<void> Jail::mount_devices() { return linux::attach_devices(root_.get(), devices_.get()); }

Result<void> Jail::mount_proc_and_run() {
  ATOLL_TRY(proc_, linux::attach_proc(root_.get()));
  ATOLL_TRY(run_atoll_, linux::attach_run(root_.get(), tools_.get()));
  return plan_.wall == Wall::kJail ? Result<void>() : mount_disks();
}

// Files, which the machine reads as disks; nothing here mounts them.
Result<void> Jail::mount_disks() {
  const std::pair<const char*, const Fd*> disks[] = {{"image", &disk_}, {"toolbox", &toolbox_}};
  for (const auto& [name, mount] : disks) {
    if (!*mount) continue;
    ATOLL_TRY([[maybe_unused]] Fd file,
              open_at(run_atoll_.get(), name, O_WRONLY | O_CREAT | O_EXCL, 0444));
    ATOLL_TRY_VOID(linux::attach_mount_at(mount->get(), run_atoll_.get(), name));
  }
  return {};
}

Result<void> Jail::mask_kernel_files() {
  return linux::mask_kernel_files(root_.get(), proc_.get(), {masks_.get(), kMasks, kBootIdFile});
}

Result<void> Jail::name_the_resolver() {
  return linux::attach_resolver(root_.get(), {masks_.get(), kMasks, kBootIdFile});
}

Result<void> Jail::mount_volumes() {
  return linux::attach_volumes(root_.get(), *plan_.volumes, volumes_);
}

Result<void> Jail::pivot() { return linux::pivot_into(root_.get()); }

Result<void> Jail::join_network() {
  ATOLL_TRY(network_, expect(plan_.network, kNetworkIsHere));
  if (setns(network_.get(), CLONE_NEWNET) != 0) return Error::system("join the network namespace");
  return {};
}

// A socket belongs to the network namespace it is made in, so not before that is joined.
Result<void> Jail::listen_for_sudo() {
  ATOLL_TRY(sudo_, linux::listen_for_sudo(run_atoll_.get()));
  return {};
}

Result<void> Jail::tell_spawner(char message, std::span<const int> fds) {
  if (plan_.spawner == Spawner::kNone) return {};
  return linux::send_byte(spawner_.get(), message, fds);
}

Result<void> Jail::release_spawner() {
  int fds[] = {network_.get()};
  return tell_spawner(kRootReady, fds);
}

Result<void> Jail::confine() { return linux::confine_agent(plan_.pids); }

Result<void> Jail::execute_agent() {
  std::vector<linux::Placement> places = {
      {plan_.listener, agent::kListenerFd}, {plan_.cgroup, agent::kCgroupFd},
      {plan_.birth, agent::kBirthFd},       {spawner_.get(), agent::kSpawnerFd},
      {plan_.probe, agent::kProbeFd},       {sudo_.get(), agent::kSudoFd}};
  int number = agent::kMemoryEventsFd;
  for (int counter : plan_.counters) places.push_back({counter, number++});
  constexpr const char* kRoles[] = {nullptr, agent::kSentryKeeperRole, agent::kKeeperRole};
  return execute(places, agent::kLastBirthFd, kRoles[static_cast<size_t>(plan_.wall)]);
}

void Jail::run_spawner(int parent_end) {
  close(parent_end);
  Progress& progress = *plan_.progress;
  Result<void> result = prepare_spawner();
  if (!result) progress.note_failure(Step::kSpawner, result.error());
  if (result) result = execute_spawner();
  if (!result) progress.note_failure(Step::kAgent, result.error());
  _exit(1);
}

Result<Fd> Jail::expect(int socket, char wanted) {
  ATOLL_TRY(auto message, linux::receive_byte(socket, -1));
  if (!message) return Error::from_errno("the other side is gone", EPIPE);
  if (message->byte != wanted) return Error::from_errno("unexpected message", EPROTO);
  return std::move(message->fds[0]);
}

Result<void> Jail::prepare_spawner() {
  ATOLL_TRY_VOID(linux::send_byte(plan_.sync, kSpawnerIsHere));
  ATOLL_TRY_VOID(expect(spawner_.get(), kIdsMapped));
  ATOLL_TRY_VOID(become_root());
  ATOLL_TRY(Fd network, expect(spawner_.get(), kRootReady));
  if (setns(network.get(), CLONE_NEWNET) != 0) return Error::system("join the network namespace");
  // pivot_root moved our root along with the jail's, but not a working directory elsewhere.
  if (chdir("/") != 0) return Error::system("chdir /");
  return confine();
}

// Executed while the helper is still busy moving it, which takes longest: the spawner itself waits
// at the gate, which is the socket that the jail uses too; the jail has long read the only message
// meant for it.
Result<void> Jail::execute_spawner() {
  linux::Placement places[] = {{spawner_.get(), agent::kSpawnersSocketFd},
                               {plan_.sync, agent::kSpawnersGateFd}};
  return execute(places, agent::kSpawnersGateFd, "spawner");
}

// The last step, because the limit may forbid the numbers that descriptors are moved to.
Result<void> Jail::execute(std::span<const linux::Placement> places, int last, const char* role) {
  ATOLL_TRY(int binary, linux::lift_descriptor(plan_.agent_binary));
  // Closed by the execve, and not before, to tell the helper.
  ATOLL_TRY_VOID(linux::lift_descriptor(plan_.sync));
  ATOLL_TRY_VOID(linux::place_descriptors(places, last));
  ATOLL_TRY_VOID(linux::limit_open_files(plan_.open_files, kAgentOpenFiles));
  const char* arguments[] = {"atoll-agent", role, nullptr};
  const char* environment[] = {nullptr};
  syscall(SYS_execveat, binary, "", arguments, environment, AT_EMPTY_PATH);
  return Error::system("execute the agent");
}

}  // namespace atl::warden
