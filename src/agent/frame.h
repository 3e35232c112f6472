// Frames: how the agent stream is cut into messages.
//
// A frame is a header of 12 bytes (length of the payload u32, type u8, three zero bytes, number
// u32) and a payload, little-endian. The number is an exec's or a channel's, as the type says.
// Frames of all execs and channels share one stream.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace atl::agent {

inline constexpr size_t kHeaderBytes = 12;
inline constexpr size_t kMaxRequestBytes = 2 * 1024 * 1024;  // payload towards the agent (kStart)
inline constexpr size_t kMaxReportBytes = 64 * 1024;         // payload from the agent

enum class FrameType : uint8_t {
  // atolld → agent
  kWelcome = 1,
  kStart = 2,
  kAcknowledge = 3,
  kSignal = 4,
  kExitAcknowledge = 5,
  kInput = 6,
  kInputEnd = 7,
  kResize = 8,
  kOpenFiles = 9,
  kOpenPort = 10,
  kOpenControl = 11,
  kGrant = 12,
  kOpenImprint = 14,
  kImprint = 15,
  // either way
  kChannelData = 32,
  kChannelEnd = 33,
  kChannelCredit = 34,
  kChannelClose = 35,
  // agent → atolld
  kHello = 64,
  kStarted = 65,
  kStartFailed = 66,
  kOutput = 67,
  kExit = 68,
  kInputTaken = 69,
  kFarewell = 70,  // instead of kHello; see farewell.h
};

struct Frame {
  FrameType type;
  uint32_t number;           // of an exec or a channel
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

// For logs and tests.
std::string_view frame_name(FrameType type);

// Builds a frame: reserves the header, lets the payload be appended, fills in the length.
class FrameWriter {
 public:
  FrameWriter(FrameType type, uint32_t number);
  ByteWriter& payload() { return writer_; }
  std::string take();

 private:
  std::string frame_;
  ByteWriter writer_;
};

// The error of a decoder.
Error malformed(std::string_view what);

}  // namespace atl::agent
