// The agent stream: what atolld and atoll-agent say to each other, whatever wall is between them.
//
// A frame is a header of 12 bytes (length of the payload u32, type u8, three zero bytes, exec
// number u32) and a payload, little-endian. Frames of all execs share one stream.
//
// The stream may break at any moment and be taken up by a new connection; the newest one wins:
//   agent  → kHello    version, nonce, every exec it knows with the offsets it has produced
//   atolld → kWelcome  the offsets atolld holds for each of them; an exec left out is killed and
//                      forgotten
// after which the agent sends output from those offsets on.
//
// Flow control is by credit: each output stream of each exec may have kWindowBytes sent but not
// acknowledged. atolld acknowledges an offset when the bytes are in the exec's log file. When the
// window is full the agent stops reading that pipe, so the program waits, no other exec is held up
// and no byte is lost. kExit and kStartFailed are repeated after every reconnect until
// kExitAcknowledge, and kStarted for every started exec comes before them.
//
// Both sides treat the other's bytes as hostile: each decoder checks every field and refuses
// left-overs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace atl::agent {

inline constexpr uint16_t kProtocolVersion = 1;
inline constexpr size_t kNonceBytes = 16;
inline constexpr size_t kHeaderBytes = 12;

inline constexpr size_t kMaxRequestBytes = 2 * 1024 * 1024;  // payload towards the agent (kStart)
inline constexpr size_t kMaxReportBytes = 64 * 1024;         // payload from the agent
inline constexpr size_t kMaxOutputBytes = 32 * 1024;         // data in one kOutput
inline constexpr size_t kWindowBytes = 256 * 1024;
inline constexpr size_t kMaxExecs = 1024;  // known to one agent at a time
inline constexpr size_t kMaxArguments = 4096;
inline constexpr size_t kMaxTextBytes = 128 * 1024;  // one argument or variable; the kernel's limit
inline constexpr size_t kMaxPathBytes = 4095;

enum class FrameType : uint8_t {
  // atolld → agent
  kWelcome = 1,
  kStart = 2,
  kAcknowledge = 3,
  kSignal = 4,
  kExitAcknowledge = 5,
  // agent → atolld
  kHello = 64,
  kStarted = 65,
  kStartFailed = 66,
  kOutput = 67,
  kExit = 68,
};

struct Frame {
  FrameType type;
  uint32_t exec;
  std::string_view payload;  // valid until the next call of the reader
};

// Cuts a byte stream into frames. Which types are legal, and how long they may be, depends on who
// reads.
class FrameReader {
 public:
  enum class Side : uint8_t { kAgent, kDaemon };
  explicit FrameReader(Side side) : side_(side) {}

  // Room to receive into; commit() says how much arrived.
  char* prepare(size_t bytes);
  void commit(size_t bytes);
  // The next whole frame, or nothing yet, or an error after which the stream must be dropped.
  Result<std::optional<Frame>> next();

 private:
  Side side_;
  std::string buffer_;
  size_t begin_ = 0;  // first byte not yet handed out
  size_t end_ = 0;    // end of received bytes; the rest of buffer_ is room
};

enum class Stream : uint8_t { kStdout = 0, kStderr = 1 };
enum class User : uint8_t { kUser = 0, kRoot = 1 };
enum class OnOutputLimit : uint8_t { kCut = 0, kKill = 1 };

struct ExecOffsets {
  uint32_t exec;
  uint64_t stdout_offset;
  uint64_t stderr_offset;
};

struct Hello {
  uint16_t version;
  std::array<unsigned char, kNonceBytes> nonce;
  std::vector<ExecOffsets> execs;
};

struct Welcome {
  uint16_t version;
  std::vector<ExecOffsets> execs;
};

struct Start {
  std::vector<std::string> arguments;    // at least one; arguments[0] is looked up in PATH
  std::vector<std::string> environment;  // NAME=value, the whole environment
  std::string directory;                 // absolute
  User user = User::kUser;
  uint32_t timeout_ms = 0;          // 0: none
  uint64_t output_limit_bytes = 0;  // per stream; what is beyond is counted and dropped
  OnOutputLimit on_output_limit = OnOutputLimit::kCut;
  uint32_t cpu_time_ms = 0;  // user and system time of all its processes; 0: no limit
  uint32_t open_files = 0;   // per process; 0: what the sandbox was made with
};

struct Acknowledge {
  Stream stream;
  uint64_t offset;
};

struct Output {
  Stream stream;
  uint64_t offset;
  std::string_view data;
};

enum class Ending : uint8_t { kExited = 0, kSignaled = 1 };
// Who ended it. kMemory: the kernel, or the agent after it. kOutput: even if it was faster.
enum class Cause : uint8_t {
  kProgram = 0,
  kWallTime = 1,
  kClient = 2,
  kCpuTime = 3,
  kOutput = 4,
  kMemory = 5,
};

// Bits of Exit::limits_hit: which limits were touched while it ran, whether or not they ended it.
enum class LimitBit : uint16_t {
  kWallTime = 1 << 0,
  kCpuTime = 1 << 1,
  kOutput = 1 << 2,
  kMemory = 1 << 3,
  kPids = 1 << 4,
  kDisk = 1 << 5,
};
inline constexpr uint16_t kAllLimitBits = 0x3f;
constexpr uint16_t bit(LimitBit limit) { return static_cast<uint16_t>(limit); }
// The limit that a cause says was reached; 0: none.
uint16_t limit_bit_of(Cause cause);

// Whose peak peak_memory_bytes is: v1 groups know only that of the whole sandbox.
enum class PeakScope : uint8_t { kExec = 0, kSandbox = 1 };

struct Exit {
  Ending ending;
  uint8_t status;                       // exit code or signal number
  Cause cause;                          // who ended it
  uint64_t stdout_bytes, stderr_bytes;  // kept: the end offsets of the logs
  uint64_t stdout_cut, stderr_cut;      // produced beyond the limit and dropped
  uint64_t start_us, wall_us, drain_us;
  uint64_t user_us, system_us;  // of every process that was ever in its leaf
  uint64_t peak_memory_bytes;
  uint64_t read_bytes, written_bytes;  // from and to storage, main process and those it waited for
  uint16_t limits_hit;                 // LimitBits
  PeakScope peak_scope;
};

struct StartFailed {
  int32_t system_errno;
  std::string operation;  // "clone", "mkdir cgroup"
};

std::string encode(const Hello& hello);
std::string encode(const Welcome& welcome);
std::string encode(uint32_t exec, const Start& start);
std::string encode(uint32_t exec, const Acknowledge& acknowledge);
std::string encode(uint32_t exec, const Output& output);
std::string encode(uint32_t exec, const Exit& exit);
std::string encode(uint32_t exec, const StartFailed& failed);
std::string encode_started(uint32_t exec, uint32_t pid);
std::string encode_signal(uint32_t exec, uint8_t signal_number);
std::string encode_exit_acknowledge(uint32_t exec);

Result<Hello> decode_hello(std::string_view payload);
Result<Welcome> decode_welcome(std::string_view payload);
Result<Start> decode_start(std::string_view payload);
Result<Acknowledge> decode_acknowledge(std::string_view payload);
Result<Output> decode_output(std::string_view payload);
Result<Exit> decode_exit(std::string_view payload);
Result<StartFailed> decode_start_failed(std::string_view payload);
Result<uint32_t> decode_started(std::string_view payload);
Result<uint8_t> decode_signal(std::string_view payload);

}  // namespace atl::agent
