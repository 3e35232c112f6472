// What sudo and the agent say to each other over a SEQPACKET socket inside the sandbox.
//
//   sudo  → SudoRequest, once, with four descriptors: the command's standard input, output and
//           error, and a memfd, sealed against every change, with an encoded Start
//   sudo  → SudoSignal, for the command, as often as it gets one
//   agent → SudoEnd, once
//
// A connection that closes before the end kills the command. Of the Start only arguments,
// environment, directory and user count: limits are those of the exec that sudo belongs to.
#pragma once

#include <array>
#include <cstdint>

namespace atl::agent {

inline constexpr const char* kSudoSocket = "/run/atoll/sudo";
inline constexpr uint32_t kSudoMagic = 0x4f445553;
inline constexpr size_t kSudoFds = 4;

struct SudoRequest {
  uint32_t magic;
};

struct SudoSignal {
  uint8_t number;
};

enum class SudoEnding : uint8_t {
  kExited,
  kSignaled,
  kNotExecuted,  // the command, its user or its directory is at fault
  kRefused,      // or the platform failed
};

// SudoEnd::operation where there is no such user.
inline constexpr const char* kFindUser = "find user";

struct SudoEnd {
  SudoEnding ending;
  uint8_t status;                  // exit code or signal number
  std::array<char, 50> operation;  // of the last two: what failed, ends with NUL
  int32_t system_errno;
};
static_assert(sizeof(SudoEnd) == 56);

}  // namespace atl::agent
