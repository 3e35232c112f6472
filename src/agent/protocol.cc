#include "agent/protocol.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/check.h"
#include "base/utf8.h"

namespace atl::agent {
namespace {

constexpr size_t kMaxOperationBytes = 256;
constexpr uint8_t kMaxSignal = 64;
constexpr uint8_t kLastStream = static_cast<uint8_t>(Stream::kSpeech);

void put_offsets(ByteWriter& writer, uint16_t version, const std::vector<ExecOffsets>& execs) {
  writer.u32(static_cast<uint32_t>(execs.size()));
  for (const ExecOffsets& entry : execs) {
    writer.u32(entry.exec);
    writer.u64(entry.stdout_offset);
    writer.u64(entry.stderr_offset);
    if (version >= 2) writer.u64(entry.speech_offset);
  }
}

bool take_offsets(ByteReader& reader, uint16_t version, std::vector<ExecOffsets>& execs) {
  uint32_t count = reader.u32();
  if (count > kMaxExecs) return false;
  for (uint32_t i = 0; i < count && reader.ok(); ++i) {
    uint32_t exec = reader.u32();
    uint64_t stdout_offset = reader.u64();
    uint64_t stderr_offset = reader.u64();
    uint64_t speech_offset = version >= 2 ? reader.u64() : 0;
    execs.push_back({exec, stdout_offset, stderr_offset, speech_offset});
  }
  return reader.ok();
}

bool take_texts(ByteReader& reader, std::vector<std::string>& texts) {
  uint32_t count = reader.u32();
  if (count > kMaxArguments) return false;
  for (uint32_t i = 0; i < count && reader.ok(); ++i)
    texts.emplace_back(reader.text(kMaxTextBytes));
  return reader.ok();
}

bool has_nul(std::string_view text) { return text.find('\0') != text.npos; }

bool any_has_nul(const std::vector<std::string>& texts) {
  return std::any_of(texts.begin(), texts.end(), [](const auto& text) { return has_nul(text); });
}

bool is_sound(const Start& start) {
  if (start.arguments.empty() || start.arguments[0].empty()) return false;
  if (!start.directory.empty() && start.directory[0] != '/') return false;
  if (start.user.empty() || has_nul(start.user)) return false;
  return !any_has_nul(start.arguments) && !any_has_nul(start.environment) &&
         !has_nul(start.directory);
}

bool is_sound(const TerminalSize& size) {
  return size.columns >= 1 && size.columns <= kMaxTerminalSide && size.rows >= 1 &&
         size.rows <= kMaxTerminalSide;
}

}  // namespace

uint16_t limit_bit_of(Cause cause) {
  switch (cause) {
    case Cause::kWallTime:
      return bit(LimitBit::kWallTime);
    case Cause::kCpuTime:
      return bit(LimitBit::kCpuTime);
    case Cause::kOutput:
      return bit(LimitBit::kOutput);
    case Cause::kMemory:
      return bit(LimitBit::kMemory);
    case Cause::kProgram:
    case Cause::kClient:
    case Cause::kUnbegun:
      return 0;
  }
  return 0;
}

std::string encode(const Hello& hello) {
  FrameWriter frame(FrameType::kHello, 0);
  frame.payload().u16(hello.version);
  frame.payload().bytes({reinterpret_cast<const char*>(hello.nonce.data()), hello.nonce.size()});
  put_offsets(frame.payload(), hello.version, hello.execs);
  if (hello.version >= 2) frame.payload().text(hello.release);
  return frame.take();
}

Result<Hello> decode_hello(std::string_view payload) {
  ByteReader reader(payload);
  Hello hello;
  hello.version = reader.u16();
  // Before anything else is read: the rest of a newer hello may be anything.
  bool is_spoken = hello.version >= kOldestProtocolVersion && hello.version <= kProtocolVersion;
  if (reader.ok() && !is_spoken)
    return Error(Code::kUnsupported, "the agent speaks protocol version " +
                                         std::to_string(hello.version) + ", this atolld " +
                                         std::to_string(kOldestProtocolVersion) + " to " +
                                         std::to_string(kProtocolVersion));
  std::string_view nonce = reader.bytes(kNonceBytes);
  if (!reader.ok()) return malformed("hello");
  std::copy(nonce.begin(), nonce.end(), hello.nonce.begin());
  if (!take_offsets(reader, hello.version, hello.execs)) return malformed("hello");
  if (hello.version >= 2) hello.release = reader.text(kMaxReleaseBytes);
  if (!reader.done() || !is_utf8(hello.release)) return malformed("hello");
  return hello;
}

std::string encode(const Welcome& welcome) {
  FrameWriter frame(FrameType::kWelcome, 0);
  frame.payload().u16(welcome.version);
  put_offsets(frame.payload(), welcome.version, welcome.execs);
  return frame.take();
}

Result<Welcome> decode_welcome(std::string_view payload) {
  ByteReader reader(payload);
  Welcome welcome;
  welcome.version = reader.u16();
  if (!take_offsets(reader, welcome.version, welcome.execs) || !reader.done())
    return malformed("welcome");
  return welcome;
}

std::string encode(uint32_t exec, const Start& start) {
  FrameWriter frame(FrameType::kStart, exec);
  ByteWriter& writer = frame.payload();
  writer.u32(static_cast<uint32_t>(start.arguments.size()));
  for (const std::string& argument : start.arguments) writer.text(argument);
  writer.u32(static_cast<uint32_t>(start.environment.size()));
  for (const std::string& variable : start.environment) writer.text(variable);
  writer.text(start.directory);
  writer.text(start.user);
  writer.u32(start.timeout_ms);
  writer.u64(start.output_limit_bytes);
  writer.u8(static_cast<uint8_t>(start.on_output_limit));
  writer.u32(start.cpu_time_ms);
  writer.u32(start.open_files);
  writer.text(start.input);
  writer.u8(static_cast<uint8_t>(start.input_mode));
  TerminalSize size = start.terminal.value_or(TerminalSize{0, 0});
  writer.u16(size.columns);
  writer.u16(size.rows);
  // Left out where it is not needed: an agent of the first version does not know it.
  if (start.control != ControlMode::kNone) writer.u8(static_cast<uint8_t>(start.control));
  return frame.take();
}

Result<Start> decode_start(std::string_view payload) {
  ByteReader reader(payload);
  Start start;
  if (!take_texts(reader, start.arguments) || !take_texts(reader, start.environment))
    return malformed("start");
  start.directory = reader.text(kMaxPathBytes);
  start.user = reader.text(kMaxUserBytes);
  start.timeout_ms = reader.u32();
  start.output_limit_bytes = reader.u64();
  uint8_t on_output_limit = reader.u8();
  start.cpu_time_ms = reader.u32();
  start.open_files = reader.u32();
  start.input = reader.text(kMaxFirstInputBytes);
  uint8_t input_mode = reader.u8();
  TerminalSize size{reader.u16(), reader.u16()};
  if (!reader.done()) {
    uint8_t control = reader.u8();
    if (control == 0 || control > static_cast<uint8_t>(ControlMode::kSpeaks))
      return malformed("start");
    start.control = static_cast<ControlMode>(control);
  }
  if (!reader.done() || !is_sound(start)) return malformed("start");
  if (on_output_limit > static_cast<uint8_t>(OnOutputLimit::kKill)) return malformed("start");
  if (input_mode > static_cast<uint8_t>(InputMode::kOpen)) return malformed("start");
  start.on_output_limit = static_cast<OnOutputLimit>(on_output_limit);
  start.input_mode = static_cast<InputMode>(input_mode);
  if (size.columns == 0 && size.rows == 0) return start;
  if (!is_sound(size)) return malformed("start");
  start.terminal = size;
  return start;
}

std::string encode(uint32_t exec, const Acknowledge& acknowledge) {
  FrameWriter frame(FrameType::kAcknowledge, exec);
  frame.payload().u8(static_cast<uint8_t>(acknowledge.stream));
  frame.payload().u64(acknowledge.offset);
  return frame.take();
}

Result<Acknowledge> decode_acknowledge(std::string_view payload) {
  ByteReader reader(payload);
  uint8_t stream = reader.u8();
  uint64_t offset = reader.u64();
  if (!reader.done() || stream > kLastStream) return malformed("acknowledge");
  return Acknowledge{static_cast<Stream>(stream), offset};
}

std::string encode(uint32_t exec, const Output& output) {
  FrameWriter frame(FrameType::kOutput, exec);
  frame.payload().u8(static_cast<uint8_t>(output.stream));
  frame.payload().u64(output.offset);
  frame.payload().bytes(output.data);
  return frame.take();
}

Result<Output> decode_output(std::string_view payload) {
  ByteReader reader(payload);
  uint8_t stream = reader.u8();
  uint64_t offset = reader.u64();
  std::string_view data = reader.rest();
  if (!reader.ok() || stream > kLastStream || data.empty() || data.size() > kMaxOutputBytes)
    return malformed("output");
  return Output{static_cast<Stream>(stream), offset, data};
}

std::string encode(uint32_t exec, const Input& input) {
  FrameWriter frame(FrameType::kInput, exec);
  frame.payload().u64(input.offset);
  frame.payload().bytes(input.data);
  return frame.take();
}

Result<Input> decode_input(std::string_view payload) {
  ByteReader reader(payload);
  uint64_t offset = reader.u64();
  std::string_view data = reader.rest();
  if (!reader.ok() || data.empty() || data.size() > kMaxInputBytes) return malformed("input");
  return Input{offset, data};
}

std::string encode(uint32_t exec, const InputTaken& taken) {
  FrameWriter frame(FrameType::kInputTaken, exec);
  frame.payload().u64(taken.offset);
  frame.payload().u8(taken.closed ? 1 : 0);
  return frame.take();
}

Result<InputTaken> decode_input_taken(std::string_view payload) {
  ByteReader reader(payload);
  uint64_t offset = reader.u64();
  uint8_t closed = reader.u8();
  if (!reader.done() || closed > 1) return malformed("input taken");
  return InputTaken{offset, closed == 1};
}

std::string encode_input_end(uint32_t exec, uint64_t end_offset) {
  FrameWriter frame(FrameType::kInputEnd, exec);
  frame.payload().u64(end_offset);
  return frame.take();
}

Result<uint64_t> decode_input_end(std::string_view payload) {
  ByteReader reader(payload);
  uint64_t offset = reader.u64();
  if (!reader.done()) return malformed("input end");
  return offset;
}

std::string encode(uint32_t exec, const TerminalSize& size) {
  FrameWriter frame(FrameType::kResize, exec);
  frame.payload().u16(size.columns);
  frame.payload().u16(size.rows);
  return frame.take();
}

Result<TerminalSize> decode_resize(std::string_view payload) {
  ByteReader reader(payload);
  TerminalSize size{reader.u16(), reader.u16()};
  if (!reader.done() || !is_sound(size)) return malformed("resize");
  return size;
}

std::string encode(uint32_t exec, const Grant& grant) {
  FrameWriter frame(FrameType::kGrant, exec);
  frame.payload().u64(grant.stdout_limit);
  frame.payload().u64(grant.stderr_limit);
  return frame.take();
}

Result<Grant> decode_grant(std::string_view payload) {
  ByteReader reader(payload);
  uint64_t stdout_limit = reader.u64();
  uint64_t stderr_limit = reader.u64();
  if (!reader.done()) return malformed("grant");
  return Grant{stdout_limit, stderr_limit};
}

std::string encode(uint32_t exec, const Exit& exit) {
  FrameWriter frame(FrameType::kExit, exec);
  ByteWriter& writer = frame.payload();
  writer.u8(static_cast<uint8_t>(exit.ending));
  writer.u8(exit.status);
  writer.u8(static_cast<uint8_t>(exit.cause));
  for (uint64_t value : {exit.stdout_bytes, exit.stderr_bytes, exit.stdout_cut, exit.stderr_cut,
                         exit.start_us, exit.wall_us, exit.drain_us, exit.user_us, exit.system_us,
                         exit.peak_memory_bytes, exit.read_bytes, exit.written_bytes})
    writer.u64(value);
  writer.u16(exit.limits_hit);
  writer.u8(static_cast<uint8_t>(exit.peak_scope));
  writer.u8(exit.may_have_outputs ? 1 : 0);
  writer.u64(exit.speech_bytes);
  return frame.take();
}

Result<Exit> decode_exit(std::string_view payload) {
  ByteReader reader(payload);
  Exit exit;
  uint8_t ending = reader.u8();
  exit.status = reader.u8();
  uint8_t cause = reader.u8();
  for (uint64_t* value :
       {&exit.stdout_bytes, &exit.stderr_bytes, &exit.stdout_cut, &exit.stderr_cut, &exit.start_us,
        &exit.wall_us, &exit.drain_us, &exit.user_us, &exit.system_us, &exit.peak_memory_bytes,
        &exit.read_bytes, &exit.written_bytes})
    *value = reader.u64();
  exit.limits_hit = reader.u16();
  uint8_t peak_scope = reader.u8();
  bool is_first_version = reader.done();
  uint8_t outputs = is_first_version ? 1 : reader.u8();
  exit.speech_bytes = is_first_version ? 0 : reader.u64();
  exit.may_have_outputs = outputs == 1;
  if (!reader.done() || ending > 1 || cause > static_cast<uint8_t>(Cause::kUnbegun))
    return malformed("exit");
  if (outputs > 1) return malformed("exit");
  if (peak_scope > 1 || (exit.limits_hit & ~kAllLimitBits) != 0) return malformed("exit");
  exit.peak_scope = static_cast<PeakScope>(peak_scope);
  exit.ending = static_cast<Ending>(ending);
  exit.cause = static_cast<Cause>(cause);
  if (exit.ending == Ending::kSignaled && (exit.status == 0 || exit.status > kMaxSignal))
    return malformed("exit");
  return exit;
}

std::string encode(uint32_t exec, const StartFailed& failed) {
  FrameWriter frame(FrameType::kStartFailed, exec);
  frame.payload().u32(static_cast<uint32_t>(failed.system_errno));
  frame.payload().text(failed.operation);
  return frame.take();
}

Result<StartFailed> decode_start_failed(std::string_view payload) {
  ByteReader reader(payload);
  uint32_t system_errno = reader.u32();
  std::string operation(reader.text(kMaxOperationBytes));
  if (!reader.done() || system_errno > 4095 || !is_utf8(operation))
    return malformed("start failed");
  return StartFailed{static_cast<int32_t>(system_errno), std::move(operation)};
}

std::string encode_started(uint32_t exec, uint32_t pid) {
  FrameWriter frame(FrameType::kStarted, exec);
  frame.payload().u32(pid);
  return frame.take();
}

Result<uint32_t> decode_started(std::string_view payload) {
  ByteReader reader(payload);
  uint32_t pid = reader.u32();
  if (!reader.done() || pid == 0 || pid > (1u << 22)) return malformed("started");
  return pid;
}

std::string encode_signal(uint32_t exec, uint8_t signal_number) {
  FrameWriter frame(FrameType::kSignal, exec);
  frame.payload().u8(signal_number);
  return frame.take();
}

Result<uint8_t> decode_signal(std::string_view payload) {
  ByteReader reader(payload);
  uint8_t signal_number = reader.u8();
  if (!reader.done() || signal_number == 0 || signal_number > kMaxSignal)
    return malformed("signal");
  return signal_number;
}

std::string encode_exit_acknowledge(uint32_t exec) {
  return FrameWriter(FrameType::kExitAcknowledge, exec).take();
}

}  // namespace atl::agent
