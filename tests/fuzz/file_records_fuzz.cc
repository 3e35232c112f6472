// File requests and the records of file operations: what a daemon may send to the agent, and a
// worker to the daemon. What is accepted must survive being encoded and decoded again.
#include <cstdint>
#include <string_view>

#include "agent/channel_protocol.h"
#include "agent/file_protocol.h"
#include "base/check.h"
#include "frame_stream.h"

namespace {

using namespace atl::agent;
using atl::fuzz::payload_of;

constexpr size_t kRecordHeaderBytes = 5;

template <typename Decode>
void check_record(std::string_view payload, Decode decode) {
  auto decoded = decode(payload);
  if (!decoded.ok()) return;
  ATOLL_CHECK(encode_record(*decoded).substr(kRecordHeaderBytes) == payload);
}

void decode_all(std::string_view payload) {
  if (auto request = decode_file_request(payload); request.ok()) {
    ATOLL_CHECK(request->path[0] == '/' && request->path.size() <= kMaxPathBytes);
    ATOLL_CHECK(request->attributes.size() <= kMaxAttributes);
    ATOLL_CHECK(payload_of(encode(1, *request)) == payload);
  }
  if (auto port = decode_open_port(payload); port.ok())
    ATOLL_CHECK(payload_of(encode_open_port(1, *port)) == payload);
  if (auto credit = decode_channel_credit(payload); credit.ok())
    ATOLL_CHECK(payload_of(encode_channel_credit(1, *credit)) == payload);
  if (auto close = decode_channel_close(payload); close.ok())
    ATOLL_CHECK(payload_of(encode(1, *close)) == payload);
  if (auto done = decode_done(payload); done.ok())
    ATOLL_CHECK(encode_done(*done).substr(kRecordHeaderBytes) == payload);
  check_record(payload, decode_entry);
  check_record(payload, decode_change);
  check_record(payload, decode_match);
  check_record(payload, decode_port);
  check_record(payload, decode_failure);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  decode_all(bytes);
  if (bytes.empty()) return 0;
  // The first byte says into how large pieces the stream of records falls.
  size_t piece = 1 + static_cast<unsigned char>(bytes[0]);
  RecordReader reader;
  for (bytes.remove_prefix(1); !bytes.empty();) {
    std::string_view next = bytes.substr(0, piece);
    bytes.remove_prefix(next.size());
    reader.add(next);
    while (true) {
      auto record = reader.next();
      if (!record.ok()) return 0;
      if (!*record) break;
      decode_all((*record)->payload);
    }
  }
  return 0;
}
