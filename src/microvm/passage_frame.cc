#include "microvm/passage_frame.h"

#include <cstring>

namespace atl::microvm {
namespace {

struct Header {
  PassageKind kind;
  uint32_t connection;
  uint32_t bytes;  // that follow
};
static_assert(sizeof(Header) == 12);

template <typename T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

bool is_well_sized(const Header& header) {
  switch (header.kind) {
    case PassageKind::kOpen:
      return header.bytes == sizeof(Destination);
    case PassageKind::kData:
      return header.bytes > 0 && header.bytes <= kMaxPassageBytes;
    case PassageKind::kEnd:
    case PassageKind::kReset:
      return header.bytes == 0;
    case PassageKind::kCredit:
      return header.bytes == sizeof(uint32_t);
  }
  return false;
}

bool is_valid(const Destination& destination) {
  bool stream = destination.transport == Transport::kStream && destination.port != 0;
  bool question =
      destination.transport == Transport::kQuestion && destination.port == kQuestionPort;
  return (stream || question) && destination.reserved == 0;
}

Error malformed() { return Error(Code::kCorrupt, "malformed frame in the passage"); }

}  // namespace

std::string encode_passage(PassageKind kind, uint32_t connection, std::string_view data) {
  Header header = {kind, connection, static_cast<uint32_t>(data.size())};
  std::string frame(bytes_of(header));
  frame += data;
  return frame;
}

std::string encode_open(uint32_t connection, const Destination& destination) {
  return encode_passage(PassageKind::kOpen, connection, bytes_of(destination));
}

std::string encode_credit(uint32_t connection, uint32_t credit) {
  return encode_passage(PassageKind::kCredit, connection, bytes_of(credit));
}

Result<bool> take_passage_frame(std::string_view& bytes, PassageFrame& frame) {
  Header header;
  if (bytes.size() < sizeof header) return false;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (!is_well_sized(header)) return malformed();
  if (bytes.size() < sizeof header + header.bytes) return false;
  std::string_view payload = bytes.substr(sizeof header, header.bytes);
  frame = {.kind = header.kind, .connection = header.connection};
  if (frame.kind == PassageKind::kData) frame.data = payload;
  if (frame.kind == PassageKind::kOpen)
    std::memcpy(&frame.destination, payload.data(), payload.size());
  if (frame.kind == PassageKind::kCredit)
    std::memcpy(&frame.credit, payload.data(), payload.size());
  if (frame.kind == PassageKind::kOpen && !is_valid(frame.destination)) return malformed();
  if (frame.kind == PassageKind::kCredit && (frame.credit == 0 || frame.credit > kPassageWindow))
    return malformed();
  bytes.remove_prefix(sizeof header + header.bytes);
  return true;
}

}  // namespace atl::microvm
