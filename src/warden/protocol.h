// What atolld may ask of the warden: fixed structs over a SOCK_SEQPACKET socket, one request or
// reply a message. No message carries a path, an argument list, a uid, a mount option or
// configuration text: only ids, digests, numbers and enums, so there is nothing to parse, only
// fields to check.
//
// The same structs are read by both sides, which are built together and live on one host. While one
// of them has been replaced and the other has not, each refuses the other's messages and says which
// versions do not match: a message of any version begins with magic and version.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "agent/birth_record.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/snapshot_id.h"
#include "linux/open_ranges.h"
#include "linux/volume_mounts.h"
#include "warden/step.h"

namespace atl::warden {

inline constexpr uint32_t kMagic = 0x4c4c5441;  // "ATLL"
// In a file of its own, so that tests can link a warden of another version.
uint16_t spoken_version();

inline constexpr size_t kNonceBytes = 16;
inline constexpr size_t kMaxListedIds = 512;

// Bounds of each limit; the API checks the same ones and names the field.
inline constexpr uint32_t kMinCpuMillis = 10;
inline constexpr uint32_t kMaxCpuMillis = 1'024'000;
inline constexpr uint64_t kMinMemoryBytes = 16ull << 20;
inline constexpr uint64_t kMaxMemoryBytes = 1ull << 40;
inline constexpr uint32_t kMinPids = 8;
inline constexpr uint32_t kMaxPids = 65'536;
inline constexpr uint64_t kMinDiskBytes = 1ull << 20;
inline constexpr uint64_t kMaxDiskBytes = 1ull << 44;
inline constexpr uint32_t kMinOpenFiles = 16;
inline constexpr uint32_t kMaxOpenFiles = 1 << 20;
inline constexpr uint32_t kDefaultOpenFiles = 1024;
inline constexpr uint64_t kMinDiskBytesPerSecond = 64 * 1024;
inline constexpr uint64_t kMaxDiskBytesPerSecond = 1ull << 40;

// Whom an out-of-memory kill ends; the same values as agent::OnOom.
enum class OnOom : uint8_t { kEndExec = 0, kEndSandbox = 1 };

// Protections that not every host has. A launch goes on without them, the receipt says so, and a
// caller may require them.
enum class Extra : uint32_t {
  kLandlock = 1 << 0,
  kTimeNamespace = 1 << 1,
  kSimpleQuotas = 1 << 2,
  kHardwareVirtualization = 1 << 3,  // of a machine; no host has it for all
};
inline constexpr uint32_t kAllExtras = 0xf;

enum class Operation : uint16_t {
  kProbe = 1,        // is everything here that a jail needs?
  kLaunch = 2,       // build an isolate
  kRemove = 3,       // end an isolate and free all it held; ENOENT: no layer that is to be kept
  kList = 4,         // ids of the isolates that exist, after a given id, in order
  kReceipt = 5,      // the signed receipt of an isolate
  kLimits = 6,       // other limits for an isolate that runs; after a failure it has those it had
  kRemoveImage = 7,  // an image that nothing starts from any more; removing nothing is a success
  kNetwork = 8,      // the sockets in an isolate's network, made anew
  kRanges = 9,       // the ranges that are open in it, which follow the request
  kFreeze = 10,      // stop all that runs in an isolate, its agent excepted; both can be repeated
  kThaw = 11,        // and let it go on
  kSnapshot = 12,    // keep what the layer of an isolate holds now, under the id of a snapshot
  kRemoveSnapshot = 13,  // removing nothing is a success
  kListSnapshots = 14,   // ids of those that exist, after a given id, in order
  kMeter = 15,  // what runs in an isolate uses now: a linux::ResourceUsage in place of a receipt
  kCreateVolume = 16,  // an empty one, of `disk_bytes`
  kRemoveVolume = 17,  // that no isolate has; removing nothing is a success
  kListVolumes = 18,   // as kListSnapshots
  kSeal = 19,  // the host's signature of a sealed snapshot, whose manifest's digest is `image`
  kSetAside = 20,        // an isolate, a snapshot or a volume: see linux/lost_found.h
  kSweepLostFound = 21,
};
inline constexpr uint16_t kLastOperation = static_cast<uint16_t>(Operation::kSweepLostFound);

struct Request {
  uint32_t magic;
  uint16_t version;
  Operation operation;
  uint64_t request_id;  // repeated in the reply
  // The id, but kList: after which to go on, or zero; zero if it is about no isolate.
  std::array<char, SandboxId::kLength> sandbox_id;
  // kLaunch, and kLimits those without a mark; zero otherwise.
  uint32_t cpu_millis;
  uint32_t pids;
  uint32_t open_files;  // of each process, soft and hard; kLaunch only
  uint64_t memory_bytes;
  uint64_t disk_bytes;
  uint64_t disk_bytes_per_second;  // read and written each; 0: not limited
  OnOom on_oom;                    // this and all that follow: kLaunch only
  uint8_t keeps_layer;  // 1: the layer stays until a kRemove without it, and is found again
  uint8_t reserved[2];
  uint32_t required;                                // bits of Extra that the caller insists on
  std::array<unsigned char, Digest::kBytes> image;  // kRemoveImage and kSeal too
  std::array<unsigned char, kNonceBytes> nonce;
  std::array<unsigned char, Digest::kBytes> toolbox;  // image for /opt/atoll; all zero: none
  // kLaunch: what the layer begins with, or all zero. Lists: after which to go on. Of a volume in
  // what is about volumes.
  std::array<char, SnapshotId::kLength> snapshot_id;
  uint8_t also_reserved[4];
  // What the layer began with, which counts too: kLaunch, kLimits and kSnapshot.
  uint64_t inherited_bytes;
  // kLaunch: the root of a jail in which a machine runs, whose disks are `image` and `toolbox`, and
  // what is enforced in that. All zero: `image` is the root.
  std::array<unsigned char, Digest::kBytes> monitor;
  agent::GuestLimits guest;
};
static_assert(std::is_trivially_copyable_v<Request> && sizeof(Request) == 256);

struct Message {
  Request request;
  linux::OpenRanges ranges;     // kRanges only
  linux::VolumeMounts volumes;  // kLaunch only: what it has of them
};
static_assert(sizeof(Message) ==
              sizeof(Request) + sizeof(linux::OpenRanges) + sizeof(linux::VolumeMounts));

enum class Status : uint16_t {
  kOk = 0,
  kFailed = 1,      // `step` and `system_errno` say where
  kExists = 2,      // kLaunch: the id is taken
  kNoImage = 3,     // kLaunch: no image of that digest
  kExhausted = 4,   // no uid range, no room in the pool, or too many at once
  kRefused = 5,     // this host cannot enforce what was asked for; `refusal` names it
  kInUse = 6,       // kLimits: more memory than that is in use
  kNoSnapshot = 7,  // kLaunch: no snapshot of that id
};

// What was asked for and cannot be had here.
enum class Refusal : uint16_t {
  kNone = 0,
  kCpu,
  kMemory,
  kPids,
  kDisk,
  kDiskRate,
  kOpenFiles,
  kLandlock,
  kTimeNamespace,
  kSimpleQuotas,
  kHardwareVirtualization,
};
inline constexpr uint16_t kLastRefusal = static_cast<uint16_t>(Refusal::kHardwareVirtualization);
// "disk_rate"; the API's code is that and "_unavailable".
std::string_view refusal_name(Refusal refusal);

struct Reply {
  uint32_t magic;
  uint16_t version;
  Operation operation;
  uint64_t request_id;
  Status status;
  Step step;
  int32_t system_errno;
  uint32_t elapsed_us;
  uint32_t id_count;       // of lists: how many ids follow this struct, at most kMaxListedIds
  Refusal refusal;         // kRefused only
  uint16_t extras;         // kProbe: bits of Extra that this host has
  uint32_t receipt_bytes;  // kReceipt, kSeal: how many bytes of it follow this struct
  uint64_t held_bytes;     // kSnapshot: at most that many are in it
  uint64_t frozen_us;      // kSnapshot: how long the isolate stood still
};
static_assert(std::is_trivially_copyable_v<Reply> && sizeof(Reply) == 56);

// With a kLaunch or kNetwork that succeeded come the sockets of linux::NetworkSocket, in its order.
inline constexpr size_t kReplySockets = 7;

using IdText = std::array<char, SandboxId::kLength>;
inline constexpr size_t kMaxReceiptBytes = 48 * 1024;
inline constexpr size_t kSealBytes = 96;  // public key and signature
inline constexpr size_t kMaxReplyBytes = sizeof(Reply) + kMaxReceiptBytes;
static_assert(kMaxListedIds * sizeof(IdText) <= kMaxReceiptBytes);

// kUnsupported with both versions if the message is of another one; a message that has none is
// none.
Result<void> check_version(std::span<const unsigned char> message);

// Copies the message once, then checks every field, also that unused ones are zero.
Result<Request> parse_request(std::span<const unsigned char> message);
Result<Message> parse_message(std::span<const unsigned char> bytes);

struct ParsedReply {
  Reply reply;
  std::span<const unsigned char> ids;      // id_count times IdText, inside the message
  std::span<const unsigned char> receipt;  // receipt_bytes, inside the message
};
Result<ParsedReply> parse_reply(std::span<const unsigned char> message);

}  // namespace atl::warden
