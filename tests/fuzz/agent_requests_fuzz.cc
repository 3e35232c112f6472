// What a daemon may send to the agent: the bytes as a stream of frames, and as the payload of each
// request. What is accepted must survive being encoded and decoded again.
#include <cstdint>
#include <string_view>

#include "agent/imprint_protocol.h"
#include "agent/protocol.h"
#include "base/check.h"
#include "frame_stream.h"

namespace {

using namespace atl::agent;
using atl::fuzz::payload_of;

void decode_all(std::string_view payload) {
  if (auto welcome = decode_welcome(payload); welcome.ok()) {
    ATOLL_CHECK(welcome->execs.size() <= kMaxExecs);
    ATOLL_CHECK(payload_of(encode(*welcome)) == payload);
  }
  if (auto start = decode_start(payload); start.ok()) {
    ATOLL_CHECK(!start->arguments.empty() && start->arguments.size() <= kMaxArguments);
    ATOLL_CHECK(start->directory.size() <= kMaxPathBytes);
    ATOLL_CHECK(start->directory.empty() || start->directory[0] == '/');
    ATOLL_CHECK(!start->user.empty() && start->user.size() <= kMaxUserBytes);
    ATOLL_CHECK(start->input.size() <= kMaxFirstInputBytes);
    ATOLL_CHECK(payload_of(encode(1, *start)) == payload);
  }
  if (auto acknowledge = decode_acknowledge(payload); acknowledge.ok())
    ATOLL_CHECK(payload_of(encode(1, *acknowledge)) == payload);
  if (auto input = decode_input(payload); input.ok()) {
    ATOLL_CHECK(!input->data.empty() && input->data.size() <= kMaxInputBytes);
    ATOLL_CHECK(payload_of(encode(1, *input)) == payload);
  }
  if (auto offset = decode_input_end(payload); offset.ok())
    ATOLL_CHECK(payload_of(encode_input_end(1, *offset)) == payload);
  if (auto size = decode_resize(payload); size.ok()) {
    ATOLL_CHECK(size->columns >= 1 && size->columns <= kMaxTerminalSide);
    ATOLL_CHECK(payload_of(encode(1, *size)) == payload);
  }
  if (auto grant = decode_grant(payload); grant.ok())
    ATOLL_CHECK(payload_of(encode(1, *grant)) == payload);
  if (auto exec = decode_open_imprint(payload); exec.ok())
    ATOLL_CHECK(payload_of(encode_open_imprint(1, *exec)) == payload);
  if (auto signal_number = decode_signal(payload); signal_number.ok())
    ATOLL_CHECK(*signal_number >= 1 && *signal_number <= 64);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto decode_frame = [](std::string_view payload) {
    ATOLL_CHECK(payload.size() <= kMaxRequestBytes);
    decode_all(payload);
  };
  atl::fuzz::read_stream(bytes, FrameReader::Side::kAgent, decode_frame);
  decode_all(bytes);
  return 0;
}
