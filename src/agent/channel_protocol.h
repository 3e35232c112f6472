// Channels: everything on the agent stream that is not an exec. A channel is one file operation or
// one connection to a port inside: two byte streams with credit, opened by atolld under a number of
// its choice that no open channel has.
//
//   atolld → kOpenFiles  a FileRequest (file_protocol.h); the bytes both ways are its records
//   atolld → kOpenPort   a port of the loopback interface inside; the bytes are the connection's
//   atolld → kOpenControl  the control socket of a controlled exec; the bytes are what is said over
//   it both     kChannelData    at most kMaxChannelDataBytes, within the credit both kChannelCredit
//   how many bytes the other side may have sent in all; both directions
//                            begin with kChannelWindowBytes
//   both     kChannelEnd     no more data comes this way
//   agent  → kChannelClose   the last word: errno (0: well) and the operation that failed
//   atolld → kChannelClose   the channel is given up; it is answered by the agent's close
//
// A control socket belongs to its exec and outlives its channels; one channel at a time. What the
// program printed before it wrote to the socket is sent before what it wrote there.
//
// The number is free again after the agent's close. Channels do not survive the stream: a new
// connection begins without any, and what ran for them is ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agent/frame.h"
#include "agent/protocol.h"
#include "base/result.h"

namespace atl::agent {

inline constexpr size_t kMaxChannels = 128;  // open at a time in one sandbox
inline constexpr size_t kMaxChannelDataBytes = 32 * 1024;
inline constexpr uint64_t kChannelWindowBytes = 256 * 1024;

inline constexpr uint16_t kControlledSince = 2;  // the protocol version
// The descriptor of a controlled program's end of its control socket.
inline constexpr int kControlFd = 5;

// A controlled program is started ahead and waits. When it begins, its time, cpu time and output
// begin to count, with these limits.
struct Beginning {
  uint32_t timeout_ms = 0;          // 0: none
  uint32_t cpu_time_ms = 0;         // 0: no limit
  uint64_t output_limit_bytes = 0;  // per stream
  OnOutputLimit on_output_limit = OnOutputLimit::kCut;
};
struct OpenControl {
  uint32_t exec;
  std::optional<Beginning> begins;  // once; none: it has begun, or waits on
};

struct ChannelClose {
  int32_t system_errno = 0;
  std::string operation;
};

std::string encode_open_port(uint32_t channel, uint16_t port);
std::string encode(uint32_t channel, const OpenControl& open);
std::string encode_channel_data(uint32_t channel, std::string_view data);
std::string encode_channel_end(uint32_t channel);
std::string encode_channel_credit(uint32_t channel, uint64_t total_bytes);
std::string encode(uint32_t channel, const ChannelClose& close);

Result<uint16_t> decode_open_port(std::string_view payload);
Result<OpenControl> decode_open_control(std::string_view payload);
Result<std::string_view> decode_channel_data(std::string_view payload);
Result<uint64_t> decode_channel_credit(std::string_view payload);
Result<ChannelClose> decode_channel_close(std::string_view payload);

}  // namespace atl::agent
