// What a hostile agent may send to the daemon: the bytes as a stream of frames, and as the payload
// of each report. What is accepted must survive being encoded and decoded again.
#include <cstdint>
#include <string_view>

#include "agent/farewell.h"
#include "agent/protocol.h"
#include "base/check.h"
#include "frame_stream.h"

namespace {

using namespace atl::agent;
using atl::fuzz::payload_of;

void decode_all(std::string_view payload) {
  if (auto hello = decode_hello(payload); hello.ok()) {
    ATOLL_CHECK(hello->execs.size() <= kMaxExecs);
    ATOLL_CHECK(payload_of(encode(*hello)) == payload);
  }
  if (auto output = decode_output(payload); output.ok()) {
    ATOLL_CHECK(!output->data.empty() && output->data.size() <= kMaxOutputBytes);
    ATOLL_CHECK(payload_of(encode(1, *output)) == payload);
  }
  if (auto exit = decode_exit(payload); exit.ok()) {
    // One of the first version ends before its outputs, which then are a 1, and its speech, then 0.
    constexpr std::string_view kOfFirstVersion("\1\0\0\0\0\0\0\0\0", 9);
    std::string again(payload_of(encode(1, *exit)));
    ATOLL_CHECK(again == payload || again == std::string(payload).append(kOfFirstVersion));
  }
  if (auto failed = decode_start_failed(payload); failed.ok())
    ATOLL_CHECK(payload_of(encode(1, *failed)) == payload);
  if (auto taken = decode_input_taken(payload); taken.ok())
    ATOLL_CHECK(payload_of(encode(1, *taken)) == payload);
  if (auto farewell = decode_farewell(payload); farewell.ok())
    ATOLL_CHECK(payload_of(encode(*farewell)) == payload);
  if (auto pid = decode_started(payload); pid.ok()) ATOLL_CHECK(*pid > 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto decode_frame = [](std::string_view payload) {
    ATOLL_CHECK(payload.size() <= kMaxReportBytes);
    decode_all(payload);
  };
  atl::fuzz::read_stream(bytes, FrameReader::Side::kDaemon, decode_frame);
  decode_all(bytes);
  return 0;
}
