// What the two sides of a machine's or a sentry's port say to each other, in pieces as a stream
// gives it. A frame that is taken is within its bounds, is what was sent, and does not depend on
// where the stream was cut.
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "microvm/rebirth.h"
#include "microvm/relay_frame.h"

namespace {

using namespace atl::microvm;

struct Taken {
  std::string frames;  // encoded again
  bool failed = false;
};

size_t most_bytes(RelayKind kind) {
  if (kind == RelayKind::kData) return kMaxRelayBytes;
  for (RelayKind number : {RelayKind::kClock, RelayKind::kRest, RelayKind::kFilesKept})
    if (kind == number) return sizeof(int64_t);
  return kind == RelayKind::kReborn ? sizeof(Rebirth) : 0;
}

Taken take_all(std::string_view bytes, size_t piece) {
  Taken taken;
  std::string pending;
  RelayFrame frame;
  while (!bytes.empty()) {
    std::string_view next = bytes.substr(0, piece);
    bytes.remove_prefix(next.size());
    pending += next;
    while (true) {
      auto whole = take_relay_frame(pending, frame);
      taken.failed = !whole.ok();
      if (taken.failed) return taken;
      if (!*whole) break;
      ATOLL_CHECK(frame.data.size() == frame.header.bytes);
      ATOLL_CHECK(frame.data.size() <= most_bytes(frame.header.kind));
      taken.frames += encode_relay(frame.header.kind, frame.header.connection, frame.data);
    }
    // Never more than one frame is waited for.
    ATOLL_CHECK(pending.size() < sizeof(RelayHeader) + kMaxRelayBytes);
  }
  return taken;
}

}  // namespace

// The first byte says into how large pieces the stream falls.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  Taken pieces = take_all(bytes, 1 + data[0]);
  Taken at_once = take_all(bytes, size);
  ATOLL_CHECK(bytes.starts_with(pieces.frames));
  ATOLL_CHECK(pieces.frames == at_once.frames && pieces.failed == at_once.failed);
  return 0;
}
