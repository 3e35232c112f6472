// How a program ended, who ended it and what it used, as the agent tells it (protocol.h).
#pragma once

#include <cstdint>

namespace atl::agent {

enum class Ending : uint8_t { kExited = 0, kSignaled = 1 };
// Who ended it. kMemory: the kernel, or the agent after it. kOutput: even if it was faster.
enum class Cause : uint8_t {
  kProgram = 0,
  kWallTime = 1,
  kClient = 2,
  kCpuTime = 3,
  kOutput = 4,
  kMemory = 5,
  kUnbegun = 6,  // a controlled program that ended before it was told to begin
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
uint16_t limit_bit_of(Cause cause);  // 0: none

enum class PeakScope : uint8_t { kExec = 0, kSandbox = 1 };  // v1 groups know the latter only

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
  bool may_have_outputs = true;  // there is a kOutputsDirectory
  uint64_t speech_bytes = 0;     // of its third stream, which is never cut
};

}  // namespace atl::agent
