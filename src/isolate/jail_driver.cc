#include "isolate/jail_driver.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "base/file.h"
#include "base/log.h"
#include "egress/policy_json.h"
#include "gvisor/sentry.h"
#include "linux/unix_socket.h"
#include "microvm/machine.h"

namespace atl::isolate {

namespace {

warden::Request make_request(warden::Operation operation) {
  warden::Request request{};
  request.operation = operation;
  return request;
}

void set_id(warden::Request& request, const SandboxId& id) {
  std::string_view text = id.view();
  text.copy(request.sandbox_id.data(), text.size());
}

agent::GuestKind guest_kind(const Monitor& monitor) {
  if (monitor.kind == Monitor::Kind::kSentry) {
    bool traces = monitor.platform == Platform::kPtrace;
    return traces ? agent::GuestKind::kTracingSentry : agent::GuestKind::kSentry;
  }
  bool hardware = monitor.virtualization == Virtualization::kHardware;
  return hardware ? agent::GuestKind::kHardwareMachine : agent::GuestKind::kMachine;
}

// What is enforced outside of a machine or a sentry is what that may use; the programs' own limits
// are inside.
void set_monitor(warden::Request& request, const Monitor& monitor) {
  bool sentry = monitor.kind == Monitor::Kind::kSentry;
  request.monitor = monitor.image.bytes();
  request.guest = {.memory_bytes = request.memory_bytes,
                   .disk_bytes = request.disk_bytes,
                   .cpu_millis = request.cpu_millis,
                   .pids = request.pids,
                   .open_files = request.open_files,
                   .kind = guest_kind(monitor)};
  MonitorNeeds needs = needs_of(monitor.kind);
  request.memory_bytes += needs.memory_bytes;
  request.disk_bytes += needs.disk_bytes;
  // A disk has its size whatever is on it, and may be written all over.
  request.inherited_bytes = 0;
  if (sentry) {
    // What is written inside is written once more when it is kept.
    request.disk_bytes = std::min(request.disk_bytes + request.guest.disk_bytes, kMaxDiskBytes);
    uint32_t pids = gvisor::kSentryPids + gvisor::kSentryPidsEach * request.pids;
    request.pids = std::min(pids, kMaxPids);
    request.open_files = gvisor::kSentryOpenFiles;
    return;
  }
  request.cpu_millis = std::max(request.cpu_millis, microvm::kMonitorCpuMillis);
  request.pids = microvm::kMonitorPids;
  request.open_files = microvm::kMonitorOpenFiles;
}

// A snapshot or a volume.
template <typename Id>
void set_kept(warden::Request& request, const Id& id) {
  std::string_view text = id.view();
  text.copy(request.snapshot_id.data(), text.size());
}

Result<linux::VolumeMounts> mounts_of(const std::vector<VolumePlace>& places) {
  linux::VolumeMounts mounts = {};
  if (places.size() > mounts.list.size()) return Error(Code::kInvalid, "too many volumes");
  for (const VolumePlace& place : places) {
    if (!is_volume_path(place.path)) return Error(Code::kInvalid, "bad path of a volume");
    linux::VolumeMount& mount = mounts.list[mounts.count++];
    place.volume.view().copy(mount.volume.data(), mount.volume.size());
    mount.read_only = place.access == VolumePlace::Access::kRead ? 1 : 0;
    place.path.copy(mount.path.data(), mount.path.size() - 1);
  }
  return mounts;
}

// Those that can also be changed while the isolate runs.
void set_limits(warden::Request& request, const WallLimits& limits) {
  request.cpu_millis = limits.cpu_millis;
  request.pids = limits.pids;
  request.memory_bytes = limits.memory_bytes;
  request.disk_bytes = limits.disk_bytes;
  request.disk_bytes_per_second = limits.disk_bytes_per_second;
  request.inherited_bytes = limits.inherited_bytes;
}

Result<void> to_result(const warden::Reply& reply, std::string_view what) {
  switch (reply.status) {
    case warden::Status::kOk:
      return {};
    case warden::Status::kExists:
      return Error(Code::kConflict, std::string(what) + ": an isolate of this id exists");
    case warden::Status::kNoImage:
      return Error(Code::kNotFound, std::string(what) + ": the image is not on this host")
          .with_reason("image_missing");
    case warden::Status::kExhausted:
      return Error(Code::kExhausted, std::string(what) + ": the host is full at step " +
                                         std::string(warden::step_name(reply.step)))
          .with_reason("host_full");
    case warden::Status::kRefused: {
      std::string name(warden::refusal_name(reply.refusal));
      return Error(Code::kUnsupported, std::string(what) + ": this host cannot enforce " + name)
          .with_reason(name + "_unavailable");
    }
    case warden::Status::kInUse:
      return Error(Code::kConflict, std::string(what) + ": more memory than that is in use")
          .with_reason("memory_in_use");
    case warden::Status::kNoSnapshot:
      return Error(Code::kNotFound, std::string(what) + ": the snapshot is not on this host")
          .with_reason("snapshot_lost");
    case warden::Status::kFailed:
      break;
  }
  bool launches = reply.operation == warden::Operation::kLaunch;
  if (launches && reply.step == warden::Step::kLayer && reply.system_errno == EMEDIUMTYPE)
    return Error(Code::kUnsupported, std::string(what) + ": the snapshot is of another wall, " +
                                         "and can be read behind that alone")
        .with_reason("not_behind_this_wall")
        .with_field("isolation");
  if (launches && reply.step == warden::Step::kVolumes)
    return Error(Code::kConflict, std::string(what) + ": a volume cannot be mounted at its path",
                 reply.system_errno)
        .with_reason("volume_path_refused");
  std::string operation =
      std::string(what) + ": step " + std::string(warden::step_name(reply.step));
  Error cause = Error::from_errno(operation, reply.system_errno);
  bool no_pool = reply.step == warden::Step::kPool;
  return Error(Code::kUnavailable, cause.message(), reply.system_errno)
      .with_reason(no_pool ? "pool_unavailable" : "isolate_failed");
}

}  // namespace

JailDriver::JailDriver(boost::asio::any_io_executor executor, std::string run_directory,
                       const PeerWatch& warden)
    : executor_(executor),
      run_directory_(std::move(run_directory)),
      warden_(executor, run_directory_, warden),
      egress_(executor, run_directory_, [this](SandboxId id) { return reopen_sockets(id); }) {}

Task<Result<uint32_t>> JailDriver::probe() {
  warden::Request request = make_request(warden::Operation::kProbe);
  ATOLL_CO_TRY(WardenClient::Answer answer, co_await warden_.ask(request));
  ATOLL_CO_TRY_VOID(to_result(answer.reply, "probe the jail"));
  co_return uint32_t{answer.reply.extras};
}

Task<Result<void>> JailDriver::launch(LaunchSpec spec) {
  warden::Request request = make_request(warden::Operation::kLaunch);
  set_id(request, spec.id);
  set_limits(request, spec.limits);
  request.open_files = spec.limits.open_files;
  request.on_oom = spec.limits.on_oom;
  request.required = spec.limits.required_extras;
  request.image = spec.image.bytes();
  request.nonce = spec.nonce;
  if (spec.toolbox) request.toolbox = spec.toolbox->bytes();
  request.keeps_layer = spec.layer_end == LayerEnd::kKept ? 1 : 0;
  if (spec.snapshot) set_kept(request, *spec.snapshot);
  if (spec.monitor) set_monitor(request, *spec.monitor);
  if (spec.monitor && spec.purpose == Purpose::kLender)
    request.guest.purpose = agent::GuestPurpose::kLender;
  warden::Message message = {};
  message.request = request;
  ATOLL_CO_TRY(message.volumes, mounts_of(spec.volumes));
  ATOLL_CO_TRY_VOID(co_await egress_.check_room());
  auto asked = spec.volumes.empty() ? warden_.ask(request) : warden_.ask(message);
  ATOLL_CO_TRY(WardenClient::Answer answer, co_await std::move(asked));
  ATOLL_CO_TRY_VOID(to_result(answer.reply, "launch"));
  if (answer.sockets.size() != warden::kReplySockets)
    co_return Error(Code::kCorrupt, "launch: the warden sent no sockets");
  auto opened = co_await egress_.open(spec.id, std::move(answer.sockets));
  if (opened) co_return opened;
  bool keeps = spec.layer_end == LayerEnd::kKept;
  auto ended = keeps ? co_await release(spec.id) : co_await remove(spec.id);
  if (!ended) log_warning("left for the sweep", {{"sandbox", spec.id.view()}, ended.error()});
  co_return opened;
}

Task<Result<EgressClient::Sockets>> JailDriver::reopen_sockets(SandboxId id) {
  warden::Request request = make_request(warden::Operation::kNetwork);
  set_id(request, id);
  ATOLL_CO_TRY(WardenClient::Answer answer, co_await warden_.ask(request));
  ATOLL_CO_TRY_VOID(to_result(answer.reply, "reopen sockets"));
  co_return std::move(answer.sockets);
}

// What the kernel hands to egress. Egress decides, so it does no harm when this is more than it
// allows; but a connection that the kernel refuses never looks open.
Task<Result<void>> JailDriver::open_ranges(SandboxId id, std::vector<egress::Cidr> ranges) {
  auto open = open_ranges_.find(id);
  bool same = open == open_ranges_.end() ? ranges.empty() : open->second == ranges;
  if (same) co_return Result<void>();
  warden::Message message = {};
  message.request.operation = warden::Operation::kRanges;
  set_id(message.request, id);
  if (ranges.size() > message.ranges.list.size())
    co_return Error(Code::kInvalid, "too many ranges").with_reason("invalid_network_rule");
  for (const egress::Cidr& range : ranges) {
    linux::AddressRange& one = message.ranges.list[message.ranges.count++];
    auto bytes = range.first().bytes();
    one.prefix_bits = static_cast<uint8_t>(range.prefix_bits());
    one.address_bytes = static_cast<uint8_t>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), one.first.begin());
  }
  ATOLL_CO_TRY(WardenClient::Answer answer, co_await warden_.ask(message));
  ATOLL_CO_TRY_VOID(to_result(answer.reply, "open ranges"));
  open_ranges_[id] = std::move(ranges);
  co_return Result<void>();
}

Task<Result<void>> JailDriver::set_network(SandboxId id, uint64_t tenant, std::string policy) {
  std::vector<egress::Cidr> ranges;
  // Egress reads the same text, and says what is wrong with it.
  if (auto parsed = egress::parse_policy_json(policy)) ranges = parsed->open_ranges();
  auto opened = co_await open_ranges(id, std::move(ranges));
  // Told whatever became of the ranges: what it no longer allows must end.
  auto set = co_await egress_.set_policy(id, tenant, std::move(policy));
  if (!opened) co_return std::move(opened).error();
  co_return set;
}

Task<Result<EgressPage>> JailDriver::read_egress(SandboxId id, uint64_t offset) {
  auto page = co_await egress_.read(id, offset);
  co_return page;
}

Task<Result<std::string>> JailDriver::call_egress(EgressCall call) {
  auto answer = co_await egress_.call(std::move(call));
  co_return answer;
}

Task<Result<warden::Reply>> JailDriver::end(SandboxId id, LayerEnd layer_end) {
  open_ranges_.erase(id);
  warden::Request request = make_request(warden::Operation::kRemove);
  set_id(request, id);
  request.keeps_layer = layer_end == LayerEnd::kKept ? 1 : 0;
  ATOLL_CO_TRY(WardenClient::Answer answer, co_await warden_.ask(request));
  co_return answer.reply;
}

Task<Result<void>> JailDriver::remove(SandboxId id) {
  // Its sockets would keep the network namespace.
  co_await egress_.close(id);
  ATOLL_CO_TRY(warden::Reply reply, co_await end(id, LayerEnd::kWithIsolate));
  co_return to_result(reply, "remove");
}

Task<Result<void>> JailDriver::vacate(SandboxId id) {
  co_await egress_.suspend(id);
  ATOLL_CO_TRY(warden::Reply reply, co_await end(id, LayerEnd::kWithIsolate));
  co_return to_result(reply, "remove");
}

Task<Result<void>> JailDriver::release(SandboxId id) {
  co_await egress_.suspend(id);
  ATOLL_CO_TRY(warden::Reply reply, co_await end(id, LayerEnd::kKept));
  bool failed = reply.status == warden::Status::kFailed;
  if (failed && reply.step == warden::Step::kLayer && reply.system_errno == ENOENT)
    co_return Error(Code::kNotFound, "release: the sandbox has no files");
  co_return to_result(reply, "release");
}

Task<Result<std::vector<SandboxId>>> JailDriver::list() {
  std::vector<SandboxId> all;
  warden::Request request = make_request(warden::Operation::kList);
  while (true) {
    ATOLL_CO_TRY(WardenClient::Answer answer, co_await warden_.ask(request));
    ATOLL_CO_TRY_VOID(to_result(answer.reply, "list isolates"));
    all.insert(all.end(), answer.ids.begin(), answer.ids.end());
    if (answer.ids.size() < warden::kMaxListedIds) co_return all;
    set_id(request, answer.ids.back());
  }
}

Task<Result<void>> JailDriver::change_limits(SandboxId id, WallLimits limits) {
  warden::Request request = make_request(warden::Operation::kLimits);
  set_id(request, id);
  set_limits(request, limits);
  ATOLL_CO_TRY(WardenClient::Answer answer, co_await warden_.ask(request));
  co_return to_result(answer.reply, "change limits");
}

Task<Result<void>> JailDriver::set_programs(SandboxId id, Programs programs) {
  bool frozen = programs == Programs::kFrozen;
  warden::Request request =
      make_request(frozen ? warden::Operation::kFreeze : warden::Operation::kThaw);
  set_id(request, id);
  ATOLL_CO_TRY(WardenClient::Answer answer, co_await warden_.ask(request));
  co_return to_result(answer.reply, frozen ? "freeze" : "thaw");
}

Task<Result<Cut>> JailDriver::cut(SandboxId id, SnapshotId snapshot, uint64_t inherited_bytes) {
  warden::Request request = make_request(warden::Operation::kSnapshot);
  set_id(request, id);
  set_kept(request, snapshot);
  request.inherited_bytes = inherited_bytes;
  ATOLL_CO_TRY(WardenClient::Answer answer, co_await warden_.ask(request));
  ATOLL_CO_TRY_VOID(to_result(answer.reply, "snapshot"));
  co_return Cut{answer.reply.held_bytes, std::chrono::microseconds(answer.reply.frozen_us)};
}

Task<Result<void>> JailDriver::remove_snapshot(SnapshotId snapshot) {
  warden::Request request = make_request(warden::Operation::kRemoveSnapshot);
  set_kept(request, snapshot);
  ATOLL_CO_TRY(WardenClient::Answer answer, co_await warden_.ask(request));
  co_return to_result(answer.reply, "remove snapshot");
}

Task<Result<std::vector<SnapshotId>>> JailDriver::list_snapshots() {
  std::vector<SnapshotId> all;
  warden::Request request = make_request(warden::Operation::kListSnapshots);
  while (true) {
    ATOLL_CO_TRY(WardenClient::Answer answer, co_await warden_.ask(request));
    ATOLL_CO_TRY_VOID(to_result(answer.reply, "list snapshots"));
    all.insert(all.end(), answer.snapshots.begin(), answer.snapshots.end());
    if (answer.snapshots.size() < warden::kMaxListedIds) co_return all;
    set_kept(request, answer.snapshots.back());
  }
}

Task<Result<void>> JailDriver::create_volume(VolumeId volume, uint64_t limit_bytes) {
  warden::Request request = make_request(warden::Operation::kCreateVolume);
  set_kept(request, volume);
  request.disk_bytes = limit_bytes;
  ATOLL_CO_TRY(WardenClient::Answer answer, co_await warden_.ask(request));
  co_return to_result(answer.reply, "create volume");
}

Task<Result<void>> JailDriver::remove_volume(VolumeId volume) {
  warden::Request request = make_request(warden::Operation::kRemoveVolume);
  set_kept(request, volume);
  ATOLL_CO_TRY(WardenClient::Answer answer, co_await warden_.ask(request));
  co_return to_result(answer.reply, "remove volume");
}

Task<Result<std::vector<VolumeId>>> JailDriver::list_volumes() {
  std::vector<VolumeId> all;
  warden::Request request = make_request(warden::Operation::kListVolumes);
  while (true) {
    ATOLL_CO_TRY(WardenClient::Answer answer, co_await warden_.ask(request));
    ATOLL_CO_TRY_VOID(to_result(answer.reply, "list volumes"));
    all.insert(all.end(), answer.volumes.begin(), answer.volumes.end());
    if (answer.volumes.size() < warden::kMaxListedIds) co_return all;
    set_kept(request, answer.volumes.back());
  }
}

Task<Result<std::string>> JailDriver::sign_manifest(Digest manifest) {
  warden::Request request = make_request(warden::Operation::kSeal);
  request.image = manifest.bytes();
  ATOLL_CO_TRY(WardenClient::Answer answer, co_await warden_.ask(request));
  ATOLL_CO_TRY_VOID(to_result(answer.reply, "sign a manifest"));
  co_return std::move(answer.receipt);
}

Task<Result<std::string>> JailDriver::receipt(SandboxId id) {
  warden::Request request = make_request(warden::Operation::kReceipt);
  set_id(request, id);
  ATOLL_CO_TRY(WardenClient::Answer answer, co_await warden_.ask(request));
  ATOLL_CO_TRY_VOID(to_result(answer.reply, "receipt"));
  co_return std::move(answer.receipt);
}

Task<Result<linux::ResourceUsage>> JailDriver::usage(SandboxId id) {
  warden::Request request = make_request(warden::Operation::kMeter);
  set_id(request, id);
  ATOLL_CO_TRY(WardenClient::Answer answer, co_await warden_.ask(request));
  ATOLL_CO_TRY_VOID(to_result(answer.reply, "usage"));
  linux::ResourceUsage usage;
  ATOLL_CHECK(answer.receipt.size() == sizeof usage);  // parse_reply() lets nothing else pass
  std::memcpy(&usage, answer.receipt.data(), sizeof usage);
  co_return usage;
}

Task<Result<void>> JailDriver::set_aside(Found found) {
  warden::Request request = make_request(warden::Operation::kSetAside);
  if (const auto* isolate = std::get_if<SandboxId>(&found)) {
    auto released = co_await release(*isolate);
    if (!released && released.error().code() != Code::kNotFound) co_return released;
    co_await egress_.close(*isolate);
    set_id(request, *isolate);
  }
  if (const auto* snapshot = std::get_if<SnapshotId>(&found)) set_kept(request, *snapshot);
  if (const auto* volume = std::get_if<VolumeId>(&found)) set_kept(request, *volume);
  ATOLL_CO_TRY(WardenClient::Answer answer, co_await warden_.ask(request));
  co_return to_result(answer.reply, "set aside");
}

Task<Result<void>> JailDriver::sweep_lost_found() {
  warden::Request request = make_request(warden::Operation::kSweepLostFound);
  ATOLL_CO_TRY(WardenClient::Answer answer, co_await warden_.ask(request));
  co_return to_result(answer.reply, "sweep lost+found");
}

Task<Result<void>> JailDriver::remove_image(Digest image) {
  warden::Request request = make_request(warden::Operation::kRemoveImage);
  request.image = image.bytes();
  ATOLL_CO_TRY(WardenClient::Answer answer, co_await warden_.ask(request));
  co_return to_result(answer.reply, "remove image");
}

Task<Result<AgentSocket>> JailDriver::connect_agent(SandboxId id) {
  ATOLL_CO_TRY(Fd directory, open_file(run_directory_ + "/agents", O_PATH | O_DIRECTORY));
  auto fd = linux::connect_at(directory.get(), id.string(), SOCK_STREAM | SOCK_NONBLOCK);
  if (!fd) {
    // Nobody holds the listener any more, or its name is gone: this agent will not come back.
    int cause = fd.error().system_errno();
    bool gone = cause == ECONNREFUSED || cause == ENOENT;
    co_return Error(gone ? Code::kNotFound : Code::kUnavailable, fd.error().message());
  }
  AgentSocket connected(executor_);
  boost::system::error_code error;
  connected.assign(boost::asio::local::stream_protocol(), fd->get(), error);
  if (error) co_return Error(Code::kUnavailable, "connect to the agent: " + error.message());
  (void)fd->release();
  co_return connected;
}

}  // namespace atl::isolate
