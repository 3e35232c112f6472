#include "agent/frame.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace atl::agent {
namespace {

constexpr size_t kMaxIdleBytes = 16 * 1024;

bool is_to_agent(FrameType type) {
  switch (type) {
    case FrameType::kWelcome:
    case FrameType::kStart:
    case FrameType::kAcknowledge:
    case FrameType::kSignal:
    case FrameType::kExitAcknowledge:
    case FrameType::kInput:
    case FrameType::kInputEnd:
    case FrameType::kResize:
    case FrameType::kOpenFiles:
    case FrameType::kOpenPort:
    case FrameType::kOpenControl:
    case FrameType::kGrant:
    case FrameType::kOpenImprint:
    case FrameType::kImprint:
    case FrameType::kChannelData:
    case FrameType::kChannelEnd:
    case FrameType::kChannelCredit:
    case FrameType::kChannelClose:
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
    case FrameType::kInputTaken:
    case FrameType::kFarewell:
    case FrameType::kChannelData:
    case FrameType::kChannelEnd:
    case FrameType::kChannelCredit:
    case FrameType::kChannelClose:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string_view frame_name(FrameType type) {
  switch (type) {
    case FrameType::kWelcome:
      return "welcome";
    case FrameType::kStart:
      return "start";
    case FrameType::kAcknowledge:
      return "acknowledge";
    case FrameType::kSignal:
      return "signal";
    case FrameType::kExitAcknowledge:
      return "exit_acknowledge";
    case FrameType::kInput:
      return "input";
    case FrameType::kInputEnd:
      return "input_end";
    case FrameType::kResize:
      return "resize";
    case FrameType::kOpenFiles:
      return "open_files";
    case FrameType::kOpenPort:
      return "open_port";
    case FrameType::kOpenControl:
      return "open_control";
    case FrameType::kGrant:
      return "grant";
    case FrameType::kOpenImprint:
      return "open_imprint";
    case FrameType::kImprint:
      return "imprint";
    case FrameType::kChannelData:
      return "channel_data";
    case FrameType::kChannelEnd:
      return "channel_end";
    case FrameType::kChannelCredit:
      return "channel_credit";
    case FrameType::kChannelClose:
      return "channel_close";
    case FrameType::kHello:
      return "hello";
    case FrameType::kStarted:
      return "started";
    case FrameType::kStartFailed:
      return "start_failed";
    case FrameType::kOutput:
      return "output";
    case FrameType::kExit:
      return "exit";
    case FrameType::kInputTaken:
      return "input_taken";
    case FrameType::kFarewell:
      return "farewell";
  }
  return "unknown";
}

Error malformed(std::string_view what) {
  return Error(Code::kCorrupt, "malformed " + std::string(what) + " frame");
}

FrameWriter::FrameWriter(FrameType type, uint32_t number) : writer_(frame_) {
  writer_.u32(0);
  writer_.u32(static_cast<uint8_t>(type));
  writer_.u32(number);
}

std::string FrameWriter::take() {
  auto length = static_cast<uint32_t>(frame_.size() - kHeaderBytes);
  std::memcpy(frame_.data(), &length, sizeof length);
  return std::move(frame_);
}

char* FrameReader::prepare(size_t bytes) {
  // Room that the caller no longer asks for is not kept: idle streams are many.
  if (begin_ == end_ && buffer_.size() > std::max(bytes, kMaxIdleBytes)) {
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
  uint32_t number = reader.u32();
  if (type_and_zeros > 0xff) return malformed("header of a");
  auto type = static_cast<FrameType>(type_and_zeros);
  bool legal = side_ == Side::kAgent ? is_to_agent(type) : is_from_agent(type);
  if (!legal) return malformed("unexpected type of");
  if (length > (side_ == Side::kAgent ? kMaxRequestBytes : kMaxReportBytes))
    return malformed("oversized");
  if (available.size() < kHeaderBytes + length) return std::optional<Frame>();
  begin_ += kHeaderBytes + length;
  return std::optional<Frame>(Frame{type, number, available.substr(kHeaderBytes, length)});
}

}  // namespace atl::agent
