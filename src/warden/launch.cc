#include "warden/launch.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "agent/birth_record.h"
#include "base/crash_point.h"
#include "base/file.h"
#include "base/log.h"
#include "linux/mounts.h"
#include "linux/pidfd.h"
#include "linux/root_file.h"
#include "linux/sealed_memory.h"
#include "linux/unix_socket.h"
#include "warden/enforcement.h"
#include "warden/images.h"
#include "warden/layer_pool.h"
#include "warden/receipt.h"
#include "warden/removal.h"
#include "warden/uid_ranges.h"

namespace atl::warden {
namespace {

constexpr int kJailTimeoutMs = 10'000;
constexpr int kListenBacklog = 16;
constexpr const char* kListenerName = "listener";

SandboxId id_of(const Request& request) {
  auto id = SandboxId::parse({request.sandbox_id.data(), request.sandbox_id.size()});
  ATOLL_CHECK(id.has_value());
  return *id;
}

}  // namespace

// The jail is cloned while its layer is made.
const Launch::LaunchStep Launch::kSteps[] = {
    {Step::kRecord, &Launch::make_record}, {Step::kUidRange, &Launch::take_uids},
    {Step::kCgroup, &Launch::make_groups}, {Step::kListener, &Launch::make_listener},
    {Step::kClone, &Launch::clone_jail},   {Step::kPool, &Launch::find_pool},
    {Step::kLayer, &Launch::make_layer},   {Step::kImage, &Launch::find_image},
    {Step::kClone, &Launch::await_jail},   {Step::kUidMap, &Launch::map_ids},
    {Step::kIdmap, &Launch::send_trees},   {Step::kSpawner, &Launch::place_spawner},
    {Step::kAgent, &Launch::await_agent},  {Step::kReceipt, &Launch::make_receipt},
};

Launch::Launch(const Host& host, const Request& request, Fault fault,
               const linux::VolumeMounts& volumes)
    : host_(host),
      request_(request),
      fault_(fault),
      id_(id_of(request)),
      image_(Digest::from_bytes(request.image)),
      toolbox_(Digest::from_bytes(request.toolbox)),
      volumes_(volumes) {}

LaunchOutcome Launch::run() {
  // Before anything is made, so that there is nothing to undo.
  Refusal refusal = find_refusal(host_, request_);
  if (refusal != Refusal::kNone) {
    log_warning("launch refused", {{"sandbox", id_.view()}, {"refusal", refusal_name(refusal)}});
    return {.status = Status::kRefused, .refusal = refusal};
  }
  auto progress = SharedProgress::create();
  if (!progress) return failed(Step::kRecord, progress.error());
  progress_.emplace(std::move(*progress));
  LaunchOutcome outcome = run_steps();
  outcome.elapsed_us = (*progress_)->elapsed_us;
  if (outcome.status == Status::kOk || !record_) return outcome;
  sync_.reset();
  Result<void> removed = remove_isolate(host_, id_, std::move(*record_));
  if (!removed)
    log_error("a failed launch left something", {{"sandbox", id_.view()}, removed.error()});
  return outcome;
}

LaunchOutcome Launch::run_steps() {
  for (const LaunchStep& step : kSteps) {
    StepTimer timer(**progress_, step.step);
    // A step that has a part in the jail fails there.
    bool injected =
        fault_.step == step.step && step.step != Step::kSpawner && step.step != Step::kAgent;
    Result<void> result =
        injected ? Error::from_errno("injected failure", ECANCELED) : (this->*step.call)();
    if (!result) return failed(step.step, result.error());
    if (crash_points_watched) reach_crash_point(fmt::format("launch.{}", step_name(step.step)));
  }
  return {};
}

LaunchOutcome Launch::failed(Step step, const Error& error) const {
  LaunchOutcome outcome = {
      .status = Status::kFailed, .step = step, .system_errno = error.system_errno()};
  if (step == Step::kRecord && error.system_errno() == EEXIST) outcome.status = Status::kExists;
  if (step == Step::kImage && error.system_errno() == ENOENT) outcome.status = Status::kNoImage;
  if (step == Step::kLayer && error.system_errno() == ENOENT) outcome.status = Status::kNoSnapshot;
  bool no_room = error.system_errno() == ENOSPC || error.system_errno() == EDQUOT;
  if (error.code() == Code::kExhausted || (step == Step::kLayer && no_room))
    outcome.status = Status::kExhausted;
  // What stopped the jail explains the failure better than our losing touch with it.
  if (progress_ && (*progress_)->failed_errno != 0) {
    outcome.step = (*progress_)->failed_step;
    outcome.system_errno = (*progress_)->failed_errno;
  }
  log_warning("launch failed", {{"sandbox", id_.view()},
                                {"step", step_name(outcome.step)},
                                {"errno", outcome.system_errno},
                                error});
  return outcome;
}

Spawner Launch::spawner() const {
  return host_.cgroups.uses_v1() ? Spawner::kNeeded : Spawner::kNone;
}

Result<void> Launch::make_record() {
  ATOLL_TRY(RecordLock record, create_record(host_, id_));
  record_.emplace(std::move(record));
  return {};
}

Result<void> Launch::take_uids() {
  ATOLL_TRY(first_uid_, take_uid_range(host_, id_, record_->directory.get()));
  return {};
}

Result<void> Launch::find_pool() { return check_pool(host_); }

Result<void> Launch::make_layer() { return create_layer(host_, id_, request_); }

Result<void> Launch::find_image() {
  if (has_toolbox() && wall() == Wall::kJail) ATOLL_TRY_VOID(mount_image(host_, toolbox_));
  return mount_image(host_, root());
}

Result<void> Launch::make_groups() {
  ATOLL_TRY(groups_, create_groups(host_, id_, request_));
  return delegate_groups(host_, id_, first_uid_);
}

Result<void> Launch::make_listener() {
  // Made where only root can reach and moved afterwards: in R/agents the client could put another
  // file in its place before the chown.
  int record = record_->directory.get();
  ATOLL_TRY(listener_, linux::listen_at(record, kListenerName, SOCK_STREAM, kListenBacklog));
  if (fchownat(record, kListenerName, host_.client_uid, -1u, AT_SYMLINK_NOFOLLOW) != 0)
    return Error::system("chown the listener");
  std::string name = id_.string();
  if (renameat2(record, kListenerName, host_.agents.get(), name.c_str(), RENAME_NOREPLACE) != 0)
    return Error::system("move the listener");
  return {};
}

Result<Fd> Launch::make_birth_record() const {
  agent::BirthRecord birth = {};
  birth.version = agent::kBirthVersion;
  birth.has_spawner = spawner() == Spawner::kNeeded;
  birth.has_probe = 1;
  birth.on_oom = static_cast<agent::OnOom>(request_.on_oom);
  birth.has_sudo = 1;
  static_assert(sizeof birth.nonce == sizeof request_.nonce);
  birth.nonce = request_.nonce;
  birth.guest = request_.guest;
  take_armed_point("atoll-agent").copy(birth.crash_at.data(), birth.crash_at.size() - 1);
  char bytes[sizeof birth];
  std::memcpy(bytes, &birth, sizeof birth);
  return linux::make_sealed_memory("atoll-birth", {bytes, sizeof bytes});
}

Result<void> Launch::clone_jail() {
  ATOLL_TRY(Fd birth, make_birth_record());
  ATOLL_TRY(auto pair, linux::make_socket_pair(SOCK_SEQPACKET));
  ATOLL_TRY(auto probe, linux::make_socket_pair(SOCK_SEQPACKET));
  for (int socket : {pair.ours.get(), probe.ours.get()}) {
    int on = 1;
    if (setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0)
      return Error::system("SO_PASSCRED");
  }
  JailPlan plan = {.spawner = spawner(),
                   .wall = wall(),
                   .host_name = "atoll-" + std::string(id_.view().substr(0, 8)),
                   .pids = request_.pids,
                   .sync = pair.theirs.get(),
                   .helper_end = pair.ours.get(),
                   .agent_binary = host_.agent_binary.get(),
                   .listener = listener_.get(),
                   .cgroup = groups_.run.get(),
                   .birth = birth.get(),
                   .probe = probe.theirs.get(),
                   .counters = groups_.counters.numbers(),
                   .open_files = request_.open_files,
                   .volumes = &volumes_,
                   .keeps_layer = request_.keeps_layer != 0,
                   .progress = progress_->get(),
                   .fail_at = fault_.step};
  ATOLL_TRY(birth_, begin_birth(plan, groups_, first_uid_));
  sync_ = std::move(pair.ours);
  probe_ = std::move(probe.ours);
  lent_ = {std::move(birth), std::move(pair.theirs), std::move(probe.theirs)};
  return {};
}

Result<void> Launch::await_jail() {
  ATOLL_TRY_VOID(await_birth(birth_, **progress_));
  lent_ = {};
  listener_.reset();
  return {};
}

// The pid cannot mean another process: the jail is our child and nobody but us reaps it.
Result<void> Launch::map_ids() {
  std::string map = fmt::format("0 {} {}", first_uid_, kUidsPerRange);
  std::string proc = "/proc/" + std::to_string(birth_.jail_pid);
  ATOLL_TRY_VOID(write_file_at(AT_FDCWD, proc + "/uid_map", map));
  return write_file_at(AT_FDCWD, proc + "/gid_map", map);
}

Result<Fd> Launch::clone_for_jail(const std::string& path, uint64_t attributes,
                                  int user_namespace) const {
  ATOLL_TRY(Fd mount, linux::clone_mount(AT_FDCWD, path));
  linux::MountAttributes wanted = {.set = attributes | MOUNT_ATTR_NOSUID,
                                   .id_map_namespace = user_namespace};
  ATOLL_TRY_VOID(linux::set_attributes(mount.get(), wanted));
  return mount;
}

Result<Fd> Launch::clone_image(const Digest& image, int user_namespace) const {
  return clone_for_jail(host_.run_dir + "/images/" + image.string(),
                        MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV, user_namespace);
}

Result<Fd> Launch::clone_image_file(const Digest& image) const {
  std::string name = image.string() + ".erofs";
  ATOLL_TRY_VOID(linux::open_root_file(host_.stored_images.get(), name, O_RDONLY));
  // By path: the open directory is of the host's mount namespace, not of ours.
  ATOLL_TRY(Fd mount, linux::clone_mount(AT_FDCWD, host_.state_dir + "/images/" + name));
  uint64_t attributes = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV;
  // gVisor's sentry maps the code of programs from it.
  if (wall() != Wall::kGvisor) attributes |= MOUNT_ATTR_NOEXEC;
  ATOLL_TRY_VOID(linux::set_attributes(mount.get(), {.set = attributes | MOUNT_ATTR_NOSUID}));
  return mount;
}

Result<void> Launch::send_trees() {
  ATOLL_TRY(Fd user_namespace,
            open_file("/proc/" + std::to_string(birth_.jail_pid) + "/ns/user", O_RDONLY));
  ATOLL_TRY(Fd image, clone_image(root(), user_namespace.get()));
  ATOLL_TRY(Fd layer, clone_for_jail(host_.run_dir + "/pool/" + layer_name(host_, id_),
                                     MOUNT_ATTR_NODEV, user_namespace.get()));
  bool kvm = request_.guest.kind == agent::GuestKind::kHardwareMachine;
  ATOLL_TRY(Fd devices, clone_for_jail(host_.run_dir + (kvm ? "/machine-devices" : "/devices"),
                                       MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC, -1));
  ATOLL_TRY(Fd masks, clone_for_jail(host_.run_dir + "/masks",
                                     MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, -1));
  ATOLL_TRY(Fd tools,
            clone_for_jail(host_.run_dir + "/tools", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV, -1));
  std::vector<int> fds = {image.get(), layer.get(), devices.get(), masks.get(), tools.get()};
  Fd disk, toolbox;
  if (wall() != Wall::kJail) {
    ATOLL_TRY(disk, clone_image_file(image_));
    fds.push_back(disk.get());
  }
  ATOLL_TRY(auto volumes,
            linux::clone_volumes(host_.run_dir + "/pool", volumes_, user_namespace.get()));
  for (const Fd& volume : volumes) fds.push_back(volume.get());
  if (has_toolbox()) {
    ATOLL_TRY(toolbox, wall() == Wall::kJail ? clone_image(toolbox_, user_namespace.get())
                                             : clone_image_file(toolbox_));
    fds.push_back(toolbox.get());
  }
  return linux::send_byte(sync_.get(), kTrees, fds);
}

Result<void> Launch::place_spawner() {
  if (spawner() == Spawner::kNone) return {};
  ATOLL_TRY(auto message, linux::receive_byte(sync_.get(), kJailTimeoutMs));
  if (!message) return Error::from_errno("the jail is gone", EPIPE);
  if (message->byte != kSpawnerIsHere || message->sender.value_or(0) <= 0)
    return Error::from_errno("unexpected message from the jail", EPROTO);
  ATOLL_TRY(spawner_, linux::open_pidfd(*message->sender));
  ATOLL_TRY_VOID(enter_v1_groups(host_, id_, *message->sender));
  return linux::send_byte(sync_.get(), agent::kGateOpen);
}

// The jail's end closes by execve (the spawner's when it has gone through the gate) or by death.
Result<void> Launch::await_agent() {
  ATOLL_TRY(auto message, linux::receive_byte(sync_.get(), kJailTimeoutMs));
  if (message) return Error::from_errno("unexpected message from the jail", EPROTO);
  if ((*progress_)->failed_errno != 0)
    return Error::from_errno("build the jail", (*progress_)->failed_errno);
  if (linux::has_ended(birth_.jail.get()))
    return Error::from_errno("the jail died in step " + std::string(step_name((*progress_)->step)),
                             ECHILD);
  if (spawner_ && linux::has_ended(spawner_.get()))
    return Error::from_errno("the spawner died", ECHILD);
  ATOLL_TRY_VOID(await_midwife(birth_.midwife.get()));
  // She sent them before she ended well.
  ATOLL_TRY(auto sockets, linux::receive_byte(birth_.sockets.ours.get(), kJailTimeoutMs));
  if (!sockets || !sockets->fds[linux::kNetworkSockets - 1])
    return Error::from_errno("the network has no sockets", EPROTO);
  std::move(sockets->fds, sockets->fds + linux::kNetworkSockets, sockets_.begin());
  return {};
}

Result<void> Launch::make_receipt() {
  return write_receipt(host_, {.id = id_,
                               .request = request_,
                               .first_uid = first_uid_,
                               .record = record_->directory.get(),
                               .probe = probe_.get()});
}

}  // namespace atl::warden
