#include "microvm/relay_frame.h"

#include <cstring>

#include "microvm/rebirth.h"

namespace atl::microvm {

std::string encode_relay(RelayKind kind, uint32_t connection, std::string_view data) {
  RelayHeader header = {kind, connection, static_cast<uint32_t>(data.size())};
  std::string frame(reinterpret_cast<const char*>(&header), sizeof header);
  frame += data;
  return frame;
}

Result<bool> take_relay_frame(std::string& bytes, RelayFrame& frame) {
  RelayHeader header;
  if (bytes.size() < sizeof header) return false;
  std::memcpy(&header, bytes.data(), sizeof header);
  bool known = header.kind >= RelayKind::kOpen && header.kind <= RelayKind::kFilesTaken;
  uint32_t most = header.kind == RelayKind::kData ? kMaxRelayBytes : 0;
  for (RelayKind number : {RelayKind::kClock, RelayKind::kRest, RelayKind::kFilesKept})
    if (header.kind == number) most = sizeof(int64_t);
  if (header.kind == RelayKind::kReborn) most = sizeof(Rebirth);
  if (!known || header.bytes > most) return Error(Code::kCorrupt, "malformed relay frame");
  if (bytes.size() < sizeof header + header.bytes) return false;
  frame.header = header;
  frame.data = bytes.substr(sizeof header, header.bytes);
  bytes.erase(0, sizeof header + header.bytes);
  return true;
}

}  // namespace atl::microvm
