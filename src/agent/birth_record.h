// What the warden hands to process 1: descriptors under fixed numbers and one record. Both programs
// are built together; the version guards against a half-finished upgrade.
#pragma once

#include <array>
#include <cstdint>

#include "agent/protocol.h"

namespace atl::agent {

// File descriptors that the agent is born with.
inline constexpr int kListenerFd = 3;  // listening AF_UNIX stream socket
inline constexpr int kCgroupFd = 4;    // directory <id>/run of the v2 tree
inline constexpr int kBirthFd = 5;     // a memfd with one BirthRecord
inline constexpr int kSpawnerFd = 6;   // SEQPACKET socket to the spawner, if BirthRecord says so
// Files of the groups that carry the sandbox's limits, open for reading, whichever version they are
// of: "oom_kill <n>" is a line of the first, "max <n>" of the second, the third is one number.
inline constexpr int kMemoryEventsFd = 7;
inline constexpr int kPidsEventsFd = 8;
inline constexpr int kMemoryPeakFd = 9;
inline constexpr int kOomNoticeFd = 10;  // v1: an eventfd; v2: memory.events again (POLLPRI)
inline constexpr int kProbeFd = 11;  // SEQPACKET socket for the birth probe, if BirthRecord says so
// Listening SEQPACKET socket of sudo, see sudo_protocol.h, if BirthRecord says so.
inline constexpr int kSudoFd = 12;
inline constexpr int kLastBirthFd = kSudoFd;

// File descriptors that the spawner is born with.
inline constexpr int kSpawnersSocketFd = 3;  // to the agent
// To the warden. The spawner starts nothing before kGateOpen has come: then it is in the groups.
inline constexpr int kSpawnersGateFd = 4;
inline constexpr char kGateOpen = 'G';

// First byte of the messages of the probe: it is there (and the warden may look), then the facts
// follow; or why there are none.
inline constexpr char kProbeHere = 'H';
inline constexpr char kProbeFacts = 'F';
inline constexpr char kProbeFailed = 'E';

// Whom an out-of-memory kill ends: the rest of the exec that was hit, or all that runs.
enum class OnOom : uint8_t { kEndExec = 0, kEndSandbox = 1 };

// Not the stream's: a warden starts only the agent that was installed with it.
inline constexpr uint16_t kBirthVersion = 2;

// How the agent's program is called where the sandbox is a machine: as its keeper.
inline constexpr const char* kKeeperRole = "keeper";

// The same where it is gVisor's.
inline constexpr const char* kSentryKeeperRole = "sentry-keeper";

// What stands between the programs and the jail: a machine with a kernel of its own, emulated or
// with the help of the host's processor (KVM), or gVisor's sentry, a kernel that is a program.
// The last: one that takes hold of system calls by ptrace.
enum class GuestKind : uint16_t {
  kMachine = 0,
  kSentry = 1,
  kHardwareMachine = 2,
  kTracingSentry = 3
};
constexpr bool is_sentry(GuestKind kind) {
  return kind == GuestKind::kSentry || kind == GuestKind::kTracingSentry;
}
// kLender: no sandbox becomes it, for it may be laid down (still_files.h).
enum class GuestPurpose : uint16_t { kSandbox = 0, kLender = 1 };

// What is enforced inside of a machine, where the warden's groups do not reach. All zero: there is
// none.
struct GuestLimits {
  uint64_t memory_bytes;
  uint64_t disk_bytes;
  uint32_t cpu_millis;
  uint32_t pids;
  uint32_t open_files;  // of each process, soft and hard
  GuestKind kind;
  GuestPurpose purpose = GuestPurpose::kSandbox;
};
static_assert(sizeof(GuestLimits) == 32);

struct BirthRecord {
  uint16_t version;
  uint8_t has_spawner;  // 1 where limits are in v1 groups: only the spawner's children are in them
  OnOom on_oom;
  uint8_t has_probe;  // 1 unless a test gives birth
  uint8_t has_sudo;   // the same
  uint8_t reserved[2];
  std::array<unsigned char, kNonceBytes> nonce;
  std::array<char, 32> crash_at = {};  // the name of a crash point, for tests; empty otherwise
  GuestLimits guest = {};
};
static_assert(sizeof(BirthRecord) == 88);

}  // namespace atl::agent
