// The agent stream: what atolld and atoll-agent say to each other, whatever wall is between them.
// Execs are here; channels, which carry file operations and port connections, in
// channel_protocol.h.
//
// The stream may break at any moment and be taken up by a new connection; the newest one wins:
//   agent  → kHello    version, nonce, every exec it knows with the offsets it has produced
//   atolld → kWelcome  the offsets atolld holds for each of them; an exec left out is killed and
//                      forgotten
// after which the agent sends output from those offsets on, and kInputTaken for each open input.
// Where there is no agent any more, a kFarewell may come instead (farewell.h).
//
// Flow control is by credit: each output stream of each exec may have kWindowBytes sent but not
// acknowledged. atolld acknowledges an offset when the bytes are in the exec's log file. When the
// window is full the agent stops reading that pipe, so the program waits, no other exec is held up
// and no byte is lost. kExit and kStartFailed are repeated after every reconnect until
// kExitAcknowledge, and kStarted for every started exec comes before them.
//
// Input has offsets too, and credit: atolld sends at most kInputCreditBytes beyond the offset of
// the last kInputTaken or, if that is more, beyond Start::input. The agent keeps at most
// kWindowBytes that the program's pipe has no room for; kInputTaken says how far it has taken input
// while that leaves room for the next credit, so a program that does not read ends in no
// kInputTaken. Bytes that the agent has are skipped, so what was sent on a broken stream can be
// sent again from the last offset told; bytes that leave a gap, or are beyond the credit or the
// end, break the protocol.
//
// An agent speaks one version; atolld those from kOldestProtocolVersion on (else kUnsupported), and
// answers in the one that the hello names. Since 2 the hello ends with the agent's release,
// programs may be controlled and have a third stream, and an exit says whether there are outputs.
// Both sides treat the other's bytes as hostile: each decoder checks every field, also left-overs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/exit.h"
#include "agent/frame.h"
#include "base/result.h"

namespace atl::agent {

inline constexpr uint16_t kProtocolVersion = 2;
inline constexpr uint16_t kOldestProtocolVersion = 1;
inline constexpr size_t kMaxReleaseBytes = 64;
inline constexpr size_t kNonceBytes = 16;

inline constexpr size_t kMaxOutputBytes = 32 * 1024;  // data in one kOutput
inline constexpr size_t kWindowBytes = 256 * 1024;
inline constexpr size_t kMaxExecs = 1024;  // known to one agent at a time
inline constexpr size_t kMaxArguments = 4096;
inline constexpr size_t kMaxTextBytes = 128 * 1024;  // one argument or variable; the kernel's limit
inline constexpr size_t kMaxPathBytes = 4095;
inline constexpr size_t kMaxUserBytes = 64;
inline constexpr size_t kMaxInputBytes = 32 * 1024;  // data in one kInput
inline constexpr size_t kInputCreditBytes = kWindowBytes / 2;
inline constexpr size_t kMaxFirstInputBytes = 1024 * 1024;  // Start::input
inline constexpr uint16_t kMaxTerminalSide = 1000;

// kSpeech: what a controlled program says on its control socket.
enum class Stream : uint8_t { kStdout = 0, kStderr = 1, kSpeech = 2 };
enum class OnOutputLimit : uint8_t { kCut = 0, kKill = 1 };
// After Start::input: the end of the program's input, or more by kInput.
enum class InputMode : uint8_t { kEnds = 0, kOpen = 1 };

// Whether it has a control socket, kControlFd. kWaits: it is started ahead and waits there, for a
// channel or a kGrant. kSpeaks: the socket is an output stream from the start.
enum class ControlMode : uint8_t { kNone = 0, kWaits = 1, kSpeaks = 2 };

struct TerminalSize {
  uint16_t columns, rows;
};

struct ExecOffsets {
  uint32_t exec;
  uint64_t stdout_offset;
  uint64_t stderr_offset;
  uint64_t speech_offset = 0;  // since version 2
};

struct Hello {
  uint16_t version;
  std::array<unsigned char, kNonceBytes> nonce;
  std::vector<ExecOffsets> execs;
  std::string release = {};  // since version 2
};

struct Welcome {
  uint16_t version;
  std::vector<ExecOffsets> execs;
};

struct Start {
  std::vector<std::string> arguments;    // at least one; arguments[0] is looked up in PATH
  std::vector<std::string> environment;  // NAME=value, the whole environment
  std::string directory;                 // absolute; empty: the user's home
  std::string user = "user";             // a name in /etc/passwd inside, or "uid", or "uid:gid"
  uint32_t timeout_ms = 0;               // 0: none
  uint64_t output_limit_bytes = 0;       // per stream; what is beyond is counted and dropped
  OnOutputLimit on_output_limit = OnOutputLimit::kCut;
  uint32_t cpu_time_ms = 0;  // user and system time of all its processes; 0: no limit
  uint32_t open_files = 0;   // per process; 0: what the sandbox was made with
  std::string input = {};    // the first bytes of its standard input
  InputMode input_mode = InputMode::kEnds;
  std::optional<TerminalSize> terminal = {};  // its output then is on stdout alone
  ControlMode control = ControlMode::kNone;   // see channel_protocol.h
};

struct Input {
  uint64_t offset;
  std::string_view data;
};

struct InputTaken {
  uint64_t offset;  // how many bytes have been taken, Start::input included
  bool closed;      // no more is taken: it was ended, or the program has closed it or ended
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

// How far its output may get, never less than it has. One that waits begins with it: four zero
// bytes come on its control socket, which becomes an output stream.
struct Grant {
  uint64_t stdout_limit;
  uint64_t stderr_limit;
};

// The operation of a start that the sandbox's own limit refused: it is no fault of ours.
inline constexpr const char* kNoRoomForProcesses = "processes";

struct StartFailed {
  int32_t system_errno;
  std::string operation;  // "clone", "mkdir cgroup", kNoRoomForProcesses
};

std::string encode(const Hello& hello);
std::string encode(const Welcome& welcome);
std::string encode(uint32_t exec, const Start& start);
std::string encode(uint32_t exec, const Acknowledge& acknowledge);
std::string encode(uint32_t exec, const Output& output);
std::string encode(uint32_t exec, const Input& input);
std::string encode(uint32_t exec, const InputTaken& taken);
std::string encode(uint32_t exec, const TerminalSize& size);
std::string encode(uint32_t exec, const Grant& grant);
std::string encode(uint32_t exec, const Exit& exit);
std::string encode(uint32_t exec, const StartFailed& failed);
std::string encode_started(uint32_t exec, uint32_t pid);
std::string encode_signal(uint32_t exec, uint8_t signal_number);
std::string encode_exit_acknowledge(uint32_t exec);
std::string encode_input_end(uint32_t exec, uint64_t end_offset);

Result<Hello> decode_hello(std::string_view payload);
Result<Welcome> decode_welcome(std::string_view payload);
Result<Start> decode_start(std::string_view payload);
Result<Acknowledge> decode_acknowledge(std::string_view payload);
Result<Output> decode_output(std::string_view payload);
Result<Input> decode_input(std::string_view payload);
Result<InputTaken> decode_input_taken(std::string_view payload);
Result<uint64_t> decode_input_end(std::string_view payload);
Result<TerminalSize> decode_resize(std::string_view payload);
Result<Grant> decode_grant(std::string_view payload);
Result<Exit> decode_exit(std::string_view payload);
Result<StartFailed> decode_start_failed(std::string_view payload);
Result<uint32_t> decode_started(std::string_view payload);
Result<uint8_t> decode_signal(std::string_view payload);

}  // namespace atl::agent
