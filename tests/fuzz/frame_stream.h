// What the two fuzzers of the agent protocol share: input as a stream of frames and as one payload.
#pragma once

#include <string_view>

#include "agent/protocol.h"
#include "base/check.h"

namespace atl::fuzz {

inline std::string_view payload_of(std::string_view frame) {
  return frame.substr(agent::kHeaderBytes);
}

// Hands over every payload. The first byte of the input says into how large pieces the stream
// falls.
template <typename Decode>
void read_stream(std::string_view bytes, agent::FrameReader::Side side, Decode decode) {
  if (bytes.empty()) return;
  size_t piece = 1 + static_cast<unsigned char>(bytes[0]);
  bytes.remove_prefix(1);
  agent::FrameReader reader(side);
  while (!bytes.empty()) {
    std::string_view next = bytes.substr(0, piece);
    bytes.remove_prefix(next.size());
    next.copy(reader.prepare(next.size()), next.size());
    reader.commit(next.size());
    while (true) {
      auto frame = reader.next();
      if (!frame.ok()) return;
      if (!*frame) break;
      decode((*frame)->payload);
    }
  }
}

}  // namespace atl::fuzz
