// What a daemon may send to the agent: the bytes as a stream of frames, and as the payload of each
// request. What is accepted must survive being encoded and decoded again.
#include <cstdint>
#include <string_view>

#include "agent/protocol.h"
#include "base/check.h"

namespace {

using namespace atl::agent;

std::string_view payload_of(std::string_view frame) { return frame.substr(kHeaderBytes); }

void decode_all(std::string_view payload) {
  if (auto welcome = decode_welcome(payload); welcome.ok()) {
    ATOLL_CHECK(welcome->execs.size() <= kMaxExecs);
    ATOLL_CHECK(payload_of(encode(*welcome)) == payload);
  }
  if (auto start = decode_start(payload); start.ok()) {
    ATOLL_CHECK(!start->arguments.empty() && start->arguments.size() <= kMaxArguments);
    ATOLL_CHECK(start->directory.size() <= kMaxPathBytes && start->directory[0] == '/');
    ATOLL_CHECK(payload_of(encode(1, *start)) == payload);
  }
  if (auto acknowledge = decode_acknowledge(payload); acknowledge.ok())
    ATOLL_CHECK(payload_of(encode(1, *acknowledge)) == payload);
  if (auto signal_number = decode_signal(payload); signal_number.ok())
    ATOLL_CHECK(*signal_number >= 1 && *signal_number <= 64);
}

// The first byte of the input says into how large pieces the stream falls.
void read_stream(std::string_view bytes) {
  if (bytes.empty()) return;
  size_t piece = 1 + static_cast<unsigned char>(bytes[0]);
  bytes.remove_prefix(1);
  FrameReader reader(FrameReader::Side::kAgent);
  while (!bytes.empty()) {
    std::string_view next = bytes.substr(0, piece);
    bytes.remove_prefix(next.size());
    next.copy(reader.prepare(next.size()), next.size());
    reader.commit(next.size());
    while (true) {
      auto frame = reader.next();
      if (!frame.ok()) return;
      if (!*frame) break;
      ATOLL_CHECK((*frame)->payload.size() <= kMaxRequestBytes);
      decode_all((*frame)->payload);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  read_stream(bytes);
  decode_all(bytes);
  return 0;
}
