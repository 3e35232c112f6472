// What a broken daemon may send to the warden with ranges of addresses behind it. Each input is
// tried as it is, and as the ranges behind a request that is right, so that their checks are
// reached at once.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/check.h"
#include "warden/protocol.h"

namespace {

using namespace atl::warden;
using Bytes = std::span<const unsigned char>;

bool is_zero(Bytes bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](unsigned char byte) { return byte == 0; });
}

void check_ranges(const atl::linux::OpenRanges& ranges) {
  ATOLL_CHECK(ranges.count <= ranges.list.size());
  for (size_t i = 0; i < ranges.list.size(); ++i) {
    const atl::linux::AddressRange& range = ranges.list[i];
    if (i >= ranges.count) {
      ATOLL_CHECK(is_zero({reinterpret_cast<const unsigned char*>(&range), sizeof range}));
      continue;
    }
    ATOLL_CHECK(range.address_bytes == 4 || range.address_bytes == 16);
    ATOLL_CHECK(range.prefix_bits <= 8 * range.address_bytes);
    ATOLL_CHECK(is_zero(Bytes(range.first).subspan((range.prefix_bits + 7u) / 8)));
  }
}

void check(Bytes bytes) {
  auto message = parse_message(bytes);
  if (!message.ok()) return;
  bool has_ranges = message->request.operation == Operation::kRanges;
  ATOLL_CHECK(bytes.size() == (has_ranges ? sizeof(Message) : sizeof(Request)));
  ATOLL_CHECK(std::memcmp(&*message, bytes.data(), bytes.size()) == 0);
  check_ranges(message->ranges);
  if (!has_ranges) ATOLL_CHECK(message->ranges.count == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  check({data, size});
  std::vector<unsigned char> message(sizeof(Message));
  Request request = {};
  request.magic = kMagic;
  request.version = spoken_version();
  request.operation = Operation::kRanges;
  request.sandbox_id.fill('a');
  request.sandbox_id[0] = 's';
  std::memcpy(message.data(), &request, sizeof request);
  size_t room = sizeof(Message) - sizeof request;
  std::copy_n(data, std::min(size, room), message.data() + sizeof request);
  check(message);
  return 0;
}
