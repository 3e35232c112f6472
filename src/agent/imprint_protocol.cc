#include "agent/imprint_protocol.h"

#include "agent/frame.h"

namespace atl::agent {

std::string encode_open_imprint(uint32_t channel, uint32_t exec) {
  FrameWriter frame(FrameType::kOpenImprint, channel);
  frame.payload().u32(exec);
  return frame.take();
}

std::string encode_imprint(uint32_t exec) { return FrameWriter(FrameType::kImprint, exec).take(); }

Result<uint32_t> decode_open_imprint(std::string_view payload) {
  ByteReader reader(payload);
  uint32_t exec = reader.u32();
  if (!reader.done()) return malformed("open imprint");
  return exec;
}

}  // namespace atl::agent
