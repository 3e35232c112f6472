#include "warden/errand.h"

#include <algorithm>
#include <chrono>

#include "base/crash_point.h"
#include "base/id_list.h"
#include "base/log.h"
#include "linux/lost_found.h"
#include "linux/subvolume.h"
#include "linux/volume_mounts.h"
#include "warden/enforced_limits.h"
#include "warden/enforcement.h"
#include "warden/freezer.h"
#include "warden/images.h"
#include "warden/inventory.h"
#include "warden/launch.h"
#include "warden/layer_pool.h"
#include "warden/notary.h"
#include "warden/receipt.h"
#include "warden/removal.h"
#include "warden/sandbox_network.h"
#include "warden/snapshots.h"

namespace atl::warden {
namespace {

void fail(Reply& reply, Step step, const Error& error) {
  reply.status = Status::kFailed;
  reply.step = step;
  reply.system_errno = error.system_errno();
  log_warning("request failed", {{"step", step_name(step)}, error});
}

void report(Reply& reply, Step step, const Result<void>& done) {
  if (!done) fail(reply, step, done.error());
}

std::optional<SandboxId> id_of(const Request& request) {
  return SandboxId::parse({request.sandbox_id.data(), request.sandbox_id.size()});
}

void probe(const Host& host, Reply& reply) {
  if (auto cgroups = host.cgroups.check(); !cgroups)
    return fail(reply, Step::kCgroup, cgroups.error());
  if (auto pool = check_pool(host); !pool) return fail(reply, Step::kPool, pool.error());
  reply.extras = find_extras(host);
}

void hand_over(linux::NetworkSockets sockets, std::vector<Fd>& fds) {
  static_assert(linux::kNetworkSockets == kReplySockets);
  std::move(sockets.begin(), sockets.end(), std::back_inserter(fds));
}

void launch(const Host& host, const Message& message, Reply& reply, std::vector<Fd>& fds) {
  Launch launch(host, message.request, {}, message.volumes);
  LaunchOutcome outcome = launch.run();
  if (outcome.status == Status::kOk) hand_over(launch.take_sockets(), fds);
  reply.status = outcome.status;
  reply.step = outcome.step;
  reply.system_errno = outcome.system_errno;
  reply.refusal = outcome.refusal;
}

void remove(const Host& host, const Request& request, Reply& reply) {
  SandboxId id = *id_of(request);
  bool keeps = request.keeps_layer != 0;
  // While its processes are there: from here on it has files that nobody takes for a dead one's.
  Result<void> kept = keeps ? keep_layer(host, id) : Result<void>();
  if (keeps) crash_point("release.layer");
  if (!kept && kept.error().system_errno() != ENOENT)
    return fail(reply, Step::kLayer, kept.error());
  report(reply, Step::kRecord, remove_isolate(host, id));
  if (reply.status != Status::kOk) return;
  if (!keeps) report(reply, Step::kPool, check_pool(host));
  if (reply.status != Status::kOk) return;
  report(reply, Step::kLayer, keeps ? kept : remove_kept_layer(host, id));
}

template <typename Id>
void list(Result<std::vector<Id>> found, const IdText& cursor, Reply& reply, std::string& ids) {
  if (!found) return fail(reply, Step::kRecord, found.error());
  auto after = Id::parse({cursor.data(), cursor.size()});
  auto first = after ? std::upper_bound(found->begin(), found->end(), *after) : found->begin();
  for (auto id = first; id != found->end() && reply.id_count < kMaxListedIds; ++id) {
    ids += id->view();
    ++reply.id_count;
  }
}

void receipt(const Host& host, const Request& request, Reply& reply, std::string& text) {
  bool seals = request.operation == Operation::kSeal;
  auto signed_text = seals ? sign_manifest(host, Digest::from_bytes(request.image))
                           : sign_receipt(host, *id_of(request));
  if (!signed_text) return fail(reply, Step::kReceipt, signed_text.error());
  text = std::move(*signed_text);
  reply.receipt_bytes = static_cast<uint32_t>(text.size());
}

void usage(const Host& host, const Request& request, Reply& reply, std::string& bytes) {
  auto used = read_usage(host, *id_of(request));
  if (!used) return fail(reply, Step::kCgroup, used.error());
  bytes.assign(reinterpret_cast<const char*>(&*used), sizeof *used);
  reply.receipt_bytes = sizeof *used;
}

void limits(const Host& host, const Request& request, Reply& reply) {
  reply.refusal = find_refusal(host, request);
  if (reply.refusal != Refusal::kNone) {
    reply.status = Status::kRefused;
    return;
  }
  Result<void> changed = change_limits(host, *id_of(request), request);
  if (changed) return;
  fail(reply, Step::kCgroup, changed.error());
  if (changed.error().system_errno() == EBUSY) reply.status = Status::kInUse;
}

void cut(const Host& host, const Request& request, Reply& reply) {
  auto cut = cut_snapshot(host, request);
  if (!cut) return fail(reply, Step::kLayer, cut.error());
  reply.held_bytes = cut->held_bytes;
  reply.frozen_us = cut->frozen_us;
}

void create_volume(const Host& host, const Request& request, Reply& reply) {
  std::string name(request.snapshot_id.data(), request.snapshot_id.size());
  auto made = linux::create_volume(host.pool.get(), name, request.disk_bytes);
  crash_point("volume.create");
  report(reply, Step::kVolumes, made);
}

void remove_volume(const Host& host, const Request& request, Reply& reply) {
  std::string name(request.snapshot_id.data(), request.snapshot_id.size());
  crash_point("volume.remove");
  report(reply, Step::kVolumes, linux::remove_subvolume(host.pool.get(), name));
}

// What atolld does not know, for a week, in a pool that it was told to adopt.
Result<void> set_aside(const Host& host, const Request& request) {
  auto isolate = id_of(request);  // that has ended, and whose layer was kept
  std::string name(request.snapshot_id.data(), request.snapshot_id.size());
  return linux::set_aside_subvolume(host.pool.get(), isolate ? layer_name(host, *isolate) : name);
}

void lost_found(const Host& host, const Request& request, Reply& reply) {
  bool sweeps = request.operation == Operation::kSweepLostFound;
  auto done = check_pool(host);
  if (done) done = sweeps ? linux::sweep_lost_found(host.pool.get()) : set_aside(host, request);
  report(reply, Step::kLayer, done);
}

void freeze(const Host& host, const Request& request, Reply& reply) {
  bool thaws = request.operation == Operation::kThaw;
  SandboxId id = *id_of(request);
  report(reply, Step::kCgroup, thaws ? thaw_isolate(host, id) : freeze_isolate(host, id));
}

void network(const Host& host, const Request& request, Reply& reply, std::vector<Fd>& fds) {
  auto sockets = reopen_sockets(host, *id_of(request));
  if (!sockets) return fail(reply, Step::kNetwork, sockets.error());
  hand_over(std::move(*sockets), fds);
}

// What is about files that are kept. A list of what there is must never be short.
bool needs_pool(Operation operation) {
  switch (operation) {
    case Operation::kSnapshot:
    case Operation::kRemoveSnapshot:
    case Operation::kListSnapshots:
    case Operation::kCreateVolume:
    case Operation::kRemoveVolume:
    case Operation::kListVolumes:
      return true;
    default:
      return false;
  }
}

// With simple quotas nobody charges a layer for what it began with.
Message as_charged(const Host& host, Message message) {
  Request& request = message.request;
  bool limits = request.operation == Operation::kLaunch || request.operation == Operation::kLimits;
  if (limits && host.pool_quotas == linux::BtrfsQuotas::kSimple)
    request.disk_bytes -= request.inherited_bytes;
  return message;
}

}  // namespace

Reply make_reply(const Request& request, Status status) {
  Reply reply = {};
  reply.magic = kMagic;
  reply.version = spoken_version();
  reply.operation = request.operation;
  reply.request_id = request.request_id;
  reply.status = status;
  return reply;
}

std::string encode_reply(const Reply& reply) {
  return std::string(reinterpret_cast<const char*>(&reply), sizeof reply);
}

namespace {

void carry_out(const Host& host, const Message& message, Reply& reply, std::string& more,
               std::vector<Fd>& fds) {
  const Request& request = message.request;
  switch (request.operation) {
    case Operation::kProbe:
      probe(host, reply);
      break;
    case Operation::kLaunch:
      launch(host, message, reply, fds);
      break;
    case Operation::kRemove:
      remove(host, request, reply);
      break;
    case Operation::kList:
      list(list_records(host), request.sandbox_id, reply, more);
      break;
    case Operation::kReceipt:
    case Operation::kSeal:
      receipt(host, request, reply, more);
      break;
    case Operation::kLimits:
      limits(host, request, reply);
      break;
    case Operation::kRemoveImage:
      report(reply, Step::kImage, remove_image(host, Digest::from_bytes(request.image)));
      break;
    case Operation::kFreeze:
    case Operation::kThaw:
      freeze(host, request, reply);
      break;
    case Operation::kSnapshot:
      cut(host, request, reply);
      break;
    case Operation::kRemoveSnapshot:
      report(reply, Step::kLayer, remove_snapshot(host, snapshot_of(request)));
      break;
    case Operation::kListSnapshots:
      list(list_ids<SnapshotId>(host.run_dir + "/pool"), request.snapshot_id, reply, more);
      break;
    case Operation::kCreateVolume:
      create_volume(host, request, reply);
      break;
    case Operation::kRemoveVolume:
      remove_volume(host, request, reply);
      break;
    case Operation::kListVolumes:
      list(list_ids<VolumeId>(host.run_dir + "/pool"), request.snapshot_id, reply, more);
      break;
    case Operation::kSetAside:
    case Operation::kSweepLostFound:
      lost_found(host, request, reply);
      break;
    case Operation::kMeter:
      usage(host, request, reply, more);
      break;
    case Operation::kNetwork:
      network(host, request, reply, fds);
      break;
    case Operation::kRanges:
      report(reply, Step::kNetwork, open_ranges(host, *id_of(request), message.ranges));
      break;
  }
}

}  // namespace

Answer serve_request(const Host& host, const Message& received) {
  const Message message = as_charged(host, received);
  auto begin = std::chrono::steady_clock::now();
  Reply reply = make_reply(message.request, Status::kOk);
  std::string more;
  std::vector<Fd> fds;
  if (needs_pool(message.request.operation)) report(reply, Step::kPool, check_pool(host));
  if (reply.status != Status::kOk) return {encode_reply(reply), {}};
  carry_out(host, message, reply, more, fds);
  auto spent = std::chrono::steady_clock::now() - begin;
  reply.elapsed_us = static_cast<uint32_t>(spent / std::chrono::microseconds(1));
  return {encode_reply(reply) + more, std::move(fds)};
}

}  // namespace atl::warden
