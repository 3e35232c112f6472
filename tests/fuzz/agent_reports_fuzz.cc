// What a hostile agent may send to the daemon: the bytes as a stream of frames, and as the payload
// of each report. What is accepted must survive being encoded and decoded again.
#include <cstdint>
#include <string_view>

#include "agent/protocol.h"
#include "base/check.h"

namespace {

using namespace atl::agent;

std::string_view payload_of(std::string_view frame) { return frame.substr(kHeaderBytes); }

void decode_all(std::string_view payload) {
  if (auto hello = decode_hello(payload); hello.ok()) {
    ATOLL_CHECK(hello->execs.size() <= kMaxExecs);
    ATOLL_CHECK(payload_of(encode(*hello)) == payload);
  }
  if (auto output = decode_output(payload); output.ok()) {
    ATOLL_CHECK(!output->data.empty() && output->data.size() <= kMaxOutputBytes);
    ATOLL_CHECK(payload_of(encode(1, *output)) == payload);
  }
  if (auto exit = decode_exit(payload); exit.ok())
    ATOLL_CHECK(payload_of(encode(1, *exit)) == payload);
  if (auto failed = decode_start_failed(payload); failed.ok())
    ATOLL_CHECK(payload_of(encode(1, *failed)) == payload);
  if (auto pid = decode_started(payload); pid.ok()) ATOLL_CHECK(*pid > 0);
}

// The first byte of the input says into how large pieces the stream falls.
void read_stream(std::string_view bytes) {
  if (bytes.empty()) return;
  size_t piece = 1 + static_cast<unsigned char>(bytes[0]);
  bytes.remove_prefix(1);
  FrameReader reader(FrameReader::Side::kDaemon);
  while (!bytes.empty()) {
    std::string_view next = bytes.substr(0, piece);
    bytes.remove_prefix(next.size());
    next.copy(reader.prepare(next.size()), next.size());
    reader.commit(next.size());
    while (true) {
      auto frame = reader.next();
      if (!frame.ok()) return;
      if (!*frame) break;
      ATOLL_CHECK((*frame)->payload.size() <= kMaxReportBytes);
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
