#include "agent/protocol.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/check.h"
#include "base/utf8.h"

namespace atl::agent {
namespace {

constexpr size_t kMaxOperationBytes = 256;
constexpr uint8_t kMaxSignal = 64;
constexpr size_t kMaxIdleBytes = 64 * 1024;

Error malformed(std::string_view what) {
  return Error(Code::kCorrupt, "malformed " + std::string(what) + " frame");
}

// Builds a frame: reserves the header, lets the payload be appended, fills in the length.
class FrameWriter {
 public:
  FrameWriter(FrameType type, uint32_t exec) : writer_(frame_) {
    writer_.u32(0);
    writer_.u32(static_cast<uint8_t>(type));
    writer_.u32(exec);
  }
  ByteWriter& payload() { return writer_; }
  std::string take() {
    auto length = static_cast<uint32_t>(frame_.size() - kHeaderBytes);
    std::memcpy(frame_.data(), &length, sizeof length);
    return std::move(frame_);
  }

 private:
  std::string frame_;
  ByteWriter writer_;
};

bool is_to_agent(FrameType type) {
  switch (type) {
    case FrameType::kWelcome:
    case FrameType::kStart:
    case FrameType::kAcknowledge:
    case FrameType::kSignal:
    case FrameType::kExitAcknowledge:
      return true;
    default:
      return false;
  }
}

bool is_from_agent(FrameType type) {
  switch (type) {
    case FrameType::kHello:
    case FrameType::kStarted:
    case FrameType::kStartFailed:
    case FrameType::kOutput:
    case FrameType::kExit:
      return true;
    default:
      return false;
  }
}

void put_offsets(ByteWriter& writer, const std::vector<ExecOffsets>& execs) {
  writer.u32(static_cast<uint32_t>(execs.size()));
  for (const ExecOffsets& entry : execs) {
    writer.u32(entry.exec);
    writer.u64(entry.stdout_offset);
    writer.u64(entry.stderr_offset);
  }
}

bool take_offsets(ByteReader& reader, std::vector<ExecOffsets>& execs) {
  uint32_t count = reader.u32();
  if (count > kMaxExecs) return false;
  for (uint32_t i = 0; i < count && reader.ok(); ++i) {
    uint32_t exec = reader.u32();
    uint64_t stdout_offset = reader.u64();
    uint64_t stderr_offset = reader.u64();
    execs.push_back({exec, stdout_offset, stderr_offset});
  }
  return reader.done();
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
      return 0;
  }
  return 0;
}

char* FrameReader::prepare(size_t bytes) {
  // The room of a large request is not kept: idle agents are many.
  if (begin_ == end_ && buffer_.size() > kMaxIdleBytes) {
    buffer_ = std::string();
    begin_ = end_ = 0;
  }
  if (begin_ > 0) {
    buffer_.erase(0, begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (buffer_.size() < end_ + bytes) buffer_.resize(end_ + bytes);
  return buffer_.data() + end_;
}

void FrameReader::commit(size_t bytes) {
  end_ += bytes;
  ATOLL_CHECK(end_ <= buffer_.size());
}

Result<std::optional<Frame>> FrameReader::next() {
  std::string_view available(buffer_.data() + begin_, end_ - begin_);
  if (available.size() < kHeaderBytes) return std::optional<Frame>();
  ByteReader reader(available.substr(0, kHeaderBytes));
  uint32_t length = reader.u32();
  uint32_t type_and_zeros = reader.u32();
  uint32_t exec = reader.u32();
  if (type_and_zeros > 0xff) return malformed("header of a");
  auto type = static_cast<FrameType>(type_and_zeros);
  bool legal = side_ == Side::kAgent ? is_to_agent(type) : is_from_agent(type);
  if (!legal) return malformed("unexpected type of");
  if (length > (side_ == Side::kAgent ? kMaxRequestBytes : kMaxReportBytes))
    return malformed("oversized");
  if (available.size() < kHeaderBytes + length) return std::optional<Frame>();
  begin_ += kHeaderBytes + length;
  return std::optional<Frame>(Frame{type, exec, available.substr(kHeaderBytes, length)});
}

std::string encode(const Hello& hello) {
  FrameWriter frame(FrameType::kHello, 0);
  frame.payload().u16(hello.version);
  frame.payload().bytes({reinterpret_cast<const char*>(hello.nonce.data()), hello.nonce.size()});
  put_offsets(frame.payload(), hello.execs);
  return frame.take();
}

Result<Hello> decode_hello(std::string_view payload) {
  ByteReader reader(payload);
  Hello hello;
  hello.version = reader.u16();
  std::string_view nonce = reader.bytes(kNonceBytes);
  if (!reader.ok()) return malformed("hello");
  std::copy(nonce.begin(), nonce.end(), hello.nonce.begin());
  if (!take_offsets(reader, hello.execs)) return malformed("hello");
  return hello;
}

std::string encode(const Welcome& welcome) {
  FrameWriter frame(FrameType::kWelcome, 0);
  frame.payload().u16(welcome.version);
  put_offsets(frame.payload(), welcome.execs);
  return frame.take();
}

Result<Welcome> decode_welcome(std::string_view payload) {
  ByteReader reader(payload);
  Welcome welcome;
  welcome.version = reader.u16();
  if (!take_offsets(reader, welcome.execs)) return malformed("welcome");
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
  writer.u8(static_cast<uint8_t>(start.user));
  writer.u32(start.timeout_ms);
  writer.u64(start.output_limit_bytes);
  writer.u8(static_cast<uint8_t>(start.on_output_limit));
  writer.u32(start.cpu_time_ms);
  writer.u32(start.open_files);
  return frame.take();
}

Result<Start> decode_start(std::string_view payload) {
  ByteReader reader(payload);
  Start start;
  if (!take_texts(reader, start.arguments) || !take_texts(reader, start.environment))
    return malformed("start");
  start.directory = reader.text(kMaxPathBytes);
  uint8_t user = reader.u8();
  start.timeout_ms = reader.u32();
  start.output_limit_bytes = reader.u64();
  uint8_t on_output_limit = reader.u8();
  start.cpu_time_ms = reader.u32();
  start.open_files = reader.u32();
  if (!reader.done() || user > static_cast<uint8_t>(User::kRoot)) return malformed("start");
  if (on_output_limit > static_cast<uint8_t>(OnOutputLimit::kKill)) return malformed("start");
  start.user = static_cast<User>(user);
  start.on_output_limit = static_cast<OnOutputLimit>(on_output_limit);
  if (start.arguments.empty() || start.arguments[0].empty()) return malformed("start");
  if (start.directory.empty() || start.directory[0] != '/') return malformed("start");
  if (any_has_nul(start.arguments) || any_has_nul(start.environment) || has_nul(start.directory))
    return malformed("start");
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
  if (!reader.done() || stream > 1) return malformed("acknowledge");
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
  if (!reader.ok() || stream > 1 || data.empty() || data.size() > kMaxOutputBytes)
    return malformed("output");
  return Output{static_cast<Stream>(stream), offset, data};
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
  if (!reader.done() || ending > 1 || cause > static_cast<uint8_t>(Cause::kMemory))
    return malformed("exit");
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
