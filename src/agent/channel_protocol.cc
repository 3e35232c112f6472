#include "agent/channel_protocol.h"

#include "base/utf8.h"

namespace atl::agent {

constexpr size_t kMaxOperationBytes = 256;
constexpr uint32_t kMaxErrno = 4095;

std::string encode_open_port(uint32_t channel, uint16_t port) {
  FrameWriter frame(FrameType::kOpenPort, channel);
  frame.payload().u16(port);
  return frame.take();
}

Result<uint16_t> decode_open_port(std::string_view payload) {
  ByteReader reader(payload);
  uint16_t port = reader.u16();
  if (!reader.done() || port == 0) return malformed("open port");
  return port;
}

std::string encode(uint32_t channel, const OpenControl& open) {
  FrameWriter frame(FrameType::kOpenControl, channel);
  Beginning begins = open.begins.value_or(Beginning());
  frame.payload().u32(open.exec);
  frame.payload().u8(open.begins ? 1 : 0);
  frame.payload().u32(begins.timeout_ms);
  frame.payload().u32(begins.cpu_time_ms);
  frame.payload().u64(begins.output_limit_bytes);
  frame.payload().u8(static_cast<uint8_t>(begins.on_output_limit));
  return frame.take();
}

Result<OpenControl> decode_open_control(std::string_view payload) {
  ByteReader reader(payload);
  OpenControl open{reader.u32(), std::nullopt};
  uint8_t has_begun = reader.u8();
  Beginning begins;
  begins.timeout_ms = reader.u32();
  begins.cpu_time_ms = reader.u32();
  begins.output_limit_bytes = reader.u64();
  uint8_t on_output_limit = reader.u8();
  if (!reader.done() || has_begun > 1 || on_output_limit > 1) return malformed("open control");
  begins.on_output_limit = static_cast<OnOutputLimit>(on_output_limit);
  if (has_begun == 1) open.begins = begins;
  return open;
}

std::string encode_channel_data(uint32_t channel, std::string_view data) {
  FrameWriter frame(FrameType::kChannelData, channel);
  frame.payload().bytes(data);
  return frame.take();
}

Result<std::string_view> decode_channel_data(std::string_view payload) {
  if (payload.empty() || payload.size() > kMaxChannelDataBytes) return malformed("channel data");
  return payload;
}

std::string encode_channel_end(uint32_t channel) {
  return FrameWriter(FrameType::kChannelEnd, channel).take();
}

std::string encode_channel_credit(uint32_t channel, uint64_t total_bytes) {
  FrameWriter frame(FrameType::kChannelCredit, channel);
  frame.payload().u64(total_bytes);
  return frame.take();
}

Result<uint64_t> decode_channel_credit(std::string_view payload) {
  ByteReader reader(payload);
  uint64_t total_bytes = reader.u64();
  if (!reader.done()) return malformed("channel credit");
  return total_bytes;
}

std::string encode(uint32_t channel, const ChannelClose& close) {
  FrameWriter frame(FrameType::kChannelClose, channel);
  frame.payload().u32(static_cast<uint32_t>(close.system_errno));
  frame.payload().text(close.operation);
  return frame.take();
}

Result<ChannelClose> decode_channel_close(std::string_view payload) {
  ByteReader reader(payload);
  uint32_t system_errno = reader.u32();
  std::string operation(reader.text(kMaxOperationBytes));
  if (!reader.done() || system_errno > kMaxErrno || !is_utf8(operation))
    return malformed("channel close");
  return ChannelClose{static_cast<int32_t>(system_errno), std::move(operation)};
}

}  // namespace atl::agent
