#include "warden/protocol.h"

#include <algorithm>
#include <cstring>

#include "linux/resource_usage.h"

namespace atl::warden {
namespace {

bool all_zero(std::span<const unsigned char> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](unsigned char byte) { return byte == 0; });
}

template <typename T>
bool is_zero(const T& value) {
  return all_zero({reinterpret_cast<const unsigned char*>(&value), sizeof value});
}

template <typename T>
bool between(T value, T low, T high) {
  return value >= low && value <= high;
}

Error invalid(const char* what) { return Error(Code::kInvalid, what); }

bool is_about_volumes(Operation operation) {
  return operation >= Operation::kCreateVolume && operation <= Operation::kListVolumes;
}

// What is kept beyond an isolate: a volume, or a snapshot.
bool is_kept_id(const IdText& text, Operation operation) {
  std::string_view id(text.data(), text.size());
  return is_about_volumes(operation) ? VolumeId::parse(id).has_value()
                                     : SnapshotId::parse(id).has_value();
}

bool is_id(const IdText& text) {
  return SandboxId::parse(std::string_view(text.data(), text.size())).has_value();
}

Result<void> check_limits(const Request& request) {
  if (!between(request.cpu_millis, kMinCpuMillis, kMaxCpuMillis)) return invalid("bad cpu_millis");
  if (!between(request.pids, kMinPids, kMaxPids)) return invalid("bad pids");
  if (!between(request.memory_bytes, kMinMemoryBytes, kMaxMemoryBytes))
    return invalid("bad memory_bytes");
  if (!between(request.disk_bytes, kMinDiskBytes, kMaxDiskBytes) ||
      request.inherited_bytes > request.disk_bytes - kMinDiskBytes)
    return invalid("bad disk_bytes");
  if (request.disk_bytes_per_second != 0 &&
      !between(request.disk_bytes_per_second, kMinDiskBytesPerSecond, kMaxDiskBytesPerSecond))
    return invalid("bad disk_bytes_per_second");
  return {};
}

Result<void> check_guest(const Request& request) {
  const agent::GuestLimits& guest = request.guest;
  if (is_zero(request.monitor))
    return is_zero(guest) ? Result<void>() : invalid("limits of no machine");
  bool good = between(guest.cpu_millis, kMinCpuMillis, kMaxCpuMillis) &&
              between(guest.pids, kMinPids, kMaxPids) &&
              between(guest.memory_bytes, kMinMemoryBytes, request.memory_bytes) &&
              between(guest.disk_bytes, kMinDiskBytes, request.disk_bytes) &&
              between(guest.open_files, kMinOpenFiles, kMaxOpenFiles) &&
              guest.kind <= agent::GuestKind::kTracingSentry &&
              guest.purpose <= agent::GuestPurpose::kLender;
  return good ? Result<void>() : invalid("bad limits of a machine");
}

Result<void> check_birth_fields(const Request& request) {
  if (!between(request.open_files, kMinOpenFiles, kMaxOpenFiles)) return invalid("bad open_files");
  if (request.on_oom > OnOom::kEndSandbox) return invalid("bad on_oom");
  if (request.keeps_layer > 1) return invalid("bad keeps_layer");
  if ((request.required & ~kAllExtras) != 0) return invalid("bad required");
  if (is_zero(request.nonce)) return invalid("no nonce");
  if (!is_zero(request.snapshot_id) && !is_kept_id(request.snapshot_id, request.operation))
    return invalid("bad snapshot id");
  return check_guest(request);
}

constexpr const char* kUnusedField = "a field that this operation does not use is set";

Result<void> check_no_limits(const Request& request) {
  bool sized = request.operation == Operation::kCreateVolume;
  bool none = request.cpu_millis == 0 && request.pids == 0 && request.memory_bytes == 0 &&
              (sized || request.disk_bytes == 0) && request.disk_bytes_per_second == 0;
  if (sized && !between(request.disk_bytes, kMinDiskBytes, kMaxDiskBytes))
    return invalid("bad disk_bytes");
  return none ? Result<void>() : invalid(kUnusedField);
}

// One thing: an isolate, a snapshot or a volume.
Result<void> check_set_aside(const Request& request) {
  if (request.inherited_bytes != 0) return invalid(kUnusedField);
  if (is_zero(request.snapshot_id))
    return is_id(request.sandbox_id) ? Result<void>() : invalid("bad sandbox id");
  if (!is_zero(request.sandbox_id)) return invalid(kUnusedField);
  bool fits = is_kept_id(request.snapshot_id, Operation::kRemoveSnapshot) ||
              is_kept_id(request.snapshot_id, Operation::kRemoveVolume);
  return fits ? Result<void>() : invalid("bad snapshot id");
}

// Of an operation about a snapshot, or none.
Result<void> check_snapshot(const Request& request) {
  if (request.operation == Operation::kSetAside) return check_set_aside(request);
  bool lists = request.operation == Operation::kListSnapshots ||
               request.operation == Operation::kListVolumes;
  bool needs = request.operation == Operation::kSnapshot ||
               request.operation == Operation::kRemoveSnapshot ||
               (is_about_volumes(request.operation) && !lists);
  bool may = needs || lists;
  bool inherits =
      request.operation == Operation::kSnapshot || request.operation == Operation::kLimits;
  if (!inherits && request.inherited_bytes != 0) return invalid(kUnusedField);
  if (is_zero(request.snapshot_id)) return needs ? invalid("no snapshot id") : Result<void>();
  if (!may) return invalid(kUnusedField);
  bool fits = is_kept_id(request.snapshot_id, request.operation);
  return fits ? Result<void>() : invalid("bad snapshot id");
}

bool names_digest(Operation operation) {
  return operation == Operation::kRemoveImage || operation == Operation::kSeal;
}

Result<void> check_no_birth_fields(const Request& request) {
  uint8_t most_kept = request.operation == Operation::kRemove ? 1 : 0;
  bool none = request.open_files == 0 && is_zero(request.on_oom) && request.required == 0 &&
              request.keeps_layer <= most_kept &&
              is_zero(request.image) != names_digest(request.operation) && is_zero(request.nonce) &&
              is_zero(request.toolbox) && is_zero(request.monitor) && is_zero(request.guest);
  return none ? check_snapshot(request) : invalid(kUnusedField);
}

}  // namespace

std::string_view step_name(Step step) {
  static constexpr std::string_view kNames[] = {
      "none",  "record",  "uid_range", "pool",    "layer",        "image", "cgroup",  "listener",
      "clone", "uid_map", "idmap",     "spawner", "namespaces",   "root",  "devices", "proc",
      "masks", "volumes", "pivot",     "network", "capabilities", "agent", "receipt", "helper"};
  static_assert(std::size(kNames) == kLastStep + 1);
  auto index = static_cast<uint16_t>(step);
  return index <= kLastStep ? kNames[index] : "unknown";
}

std::string_view refusal_name(Refusal refusal) {
  static constexpr std::string_view kNames[] = {"none",
                                                "cpu",
                                                "memory",
                                                "pids",
                                                "disk",
                                                "disk_rate",
                                                "open_files",
                                                "landlock",
                                                "time_namespace",
                                                "simple_quotas",
                                                "hardware_virtualization"};
  static_assert(std::size(kNames) == kLastRefusal + 1);
  auto index = static_cast<uint16_t>(refusal);
  return index <= kLastRefusal ? kNames[index] : "unknown";
}

Result<void> check_version(std::span<const unsigned char> message) {
  uint32_t magic = 0;
  uint16_t version = 0;
  if (message.size() < sizeof magic + sizeof version) return invalid("message is too short");
  std::memcpy(&magic, message.data(), sizeof magic);
  std::memcpy(&version, message.data() + sizeof magic, sizeof version);
  if (magic != kMagic) return invalid("message has the wrong magic");
  if (version == spoken_version()) return {};
  return Error(Code::kUnsupported, "the other side speaks version " + std::to_string(version) +
                                       ", this one " + std::to_string(spoken_version()));
}

Result<Request> parse_request(std::span<const unsigned char> message) {
  ATOLL_TRY_VOID(check_version(message));
  Request request;
  if (message.size() != sizeof request) return invalid("request has the wrong size");
  std::memcpy(&request, message.data(), sizeof request);
  if (!is_zero(request.reserved) || !is_zero(request.also_reserved))
    return invalid("a reserved field is set");
  switch (request.operation) {
    case Operation::kLaunch:
      if (!is_id(request.sandbox_id)) return invalid("bad sandbox id");
      ATOLL_TRY_VOID(check_limits(request));
      ATOLL_TRY_VOID(check_birth_fields(request));
      return request;
    case Operation::kLimits:
      if (!is_id(request.sandbox_id)) return invalid("bad sandbox id");
      ATOLL_TRY_VOID(check_limits(request));
      ATOLL_TRY_VOID(check_no_birth_fields(request));
      return request;
    case Operation::kRemove:
    case Operation::kReceipt:
    case Operation::kNetwork:
    case Operation::kRanges:
    case Operation::kFreeze:
    case Operation::kThaw:
    case Operation::kSnapshot:
    case Operation::kMeter:
      if (!is_id(request.sandbox_id)) return invalid("bad sandbox id");
      break;
    case Operation::kList:
      if (!is_zero(request.sandbox_id) && !is_id(request.sandbox_id))
        return invalid("bad sandbox id");
      break;
    case Operation::kSetAside:
      break;
    case Operation::kRemoveImage:
    case Operation::kSeal:
    case Operation::kSweepLostFound:
    case Operation::kRemoveSnapshot:
    case Operation::kListSnapshots:
    case Operation::kCreateVolume:
    case Operation::kRemoveVolume:
    case Operation::kListVolumes:
    case Operation::kProbe:
      if (!is_zero(request.sandbox_id)) return invalid("a sandbox id that is not used");
      break;
    default:
      return invalid("unknown operation");
  }
  ATOLL_TRY_VOID(check_no_limits(request));
  ATOLL_TRY_VOID(check_no_birth_fields(request));
  return request;
}

Result<Message> parse_message(std::span<const unsigned char> bytes) {
  Message message = {};
  bool is_long = bytes.size() == sizeof message;
  ATOLL_TRY(message.request, parse_request(is_long ? bytes.first(sizeof(Request)) : bytes));
  bool has_ranges = message.request.operation == Operation::kRanges;
  if (has_ranges ? !is_long : is_long && message.request.operation != Operation::kLaunch)
    return invalid("ranges or volumes that are not used");
  if (is_long) std::memcpy(&message, bytes.data(), sizeof message);
  if (has_ranges ? message.volumes.count != 0 : message.ranges.count != 0)
    return invalid("ranges or volumes that are not used");
  ATOLL_TRY_VOID(message.ranges.check());
  ATOLL_TRY_VOID(message.volumes.check());
  return message;
}

Result<ParsedReply> parse_reply(std::span<const unsigned char> message) {
  ATOLL_TRY_VOID(check_version(message));
  ParsedReply parsed;
  Reply& reply = parsed.reply;
  if (message.size() < sizeof reply) return invalid("reply is too short");
  std::memcpy(&reply, message.data(), sizeof reply);
  if (!between<uint16_t>(static_cast<uint16_t>(reply.operation), 1, kLastOperation))
    return invalid("unknown operation");
  if (static_cast<uint16_t>(reply.status) > static_cast<uint16_t>(Status::kNoSnapshot))
    return invalid("unknown status");
  if (static_cast<uint16_t>(reply.step) > kLastStep) return invalid("unknown step");
  bool refused = reply.status == Status::kRefused;
  if (static_cast<uint16_t>(reply.refusal) > kLastRefusal ||
      refused != (reply.refusal != Refusal::kNone))
    return invalid("bad refusal");
  if ((reply.extras & ~kAllExtras) != 0 ||
      (reply.extras != 0 && reply.operation != Operation::kProbe))
    return invalid("bad extras");
  if (reply.id_count > kMaxListedIds) return invalid("too many ids");
  bool isolates = reply.operation == Operation::kList;
  if (reply.id_count > 0 && !isolates && reply.operation != Operation::kListSnapshots &&
      reply.operation != Operation::kListVolumes)
    return invalid("unasked ids");
  bool has_usage = reply.operation == Operation::kMeter && reply.status == Status::kOk;
  bool has_seal = reply.operation == Operation::kSeal && reply.status == Status::kOk;
  if (has_seal && reply.receipt_bytes != kSealBytes) return invalid("not a seal");
  if (has_usage ? reply.receipt_bytes != sizeof(linux::ResourceUsage)
                : reply.receipt_bytes > 0 && !has_seal && reply.operation != Operation::kReceipt)
    return invalid("unasked receipt");
  size_t id_bytes = reply.id_count * sizeof(IdText);
  if (reply.receipt_bytes > kMaxReceiptBytes ||
      message.size() != sizeof reply + id_bytes + reply.receipt_bytes)
    return invalid("what follows the reply has the wrong size");
  parsed.ids = message.subspan(sizeof reply, id_bytes);
  parsed.receipt = message.subspan(sizeof reply + id_bytes);
  for (size_t i = 0; i < reply.id_count; ++i) {
    IdText text;
    std::memcpy(&text, parsed.ids.data() + i * sizeof text, sizeof text);
    if (!(isolates ? is_id(text) : is_kept_id(text, reply.operation)))
      return invalid("bad id in list");
  }
  return parsed;
}

}  // namespace atl::warden
