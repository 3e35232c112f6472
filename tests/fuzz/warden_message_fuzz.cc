// What a broken daemon may send to the warden with ranges of addresses or volumes behind it. Each
// input is tried as it is, and as either behind a request that is right, so that their checks are
// reached at once.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
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

void check_volumes(const atl::linux::VolumeMounts& volumes) {
  ATOLL_CHECK(volumes.count <= volumes.list.size());
  for (size_t i = 0; i < volumes.list.size(); ++i) {
    const atl::linux::VolumeMount& volume = volumes.list[i];
    if (i >= volumes.count) {
      ATOLL_CHECK(is_zero({reinterpret_cast<const unsigned char*>(&volume), sizeof volume}));
      continue;
    }
    ATOLL_CHECK(atl::VolumeId::parse(volume.name()).has_value());
    ATOLL_CHECK(volume.read_only <= 1 && volume.path.back() == 0 && volume.path[0] == '/');
    std::string path = volume.target() + "/";
    ATOLL_CHECK(path.find("/../") == path.npos && path.find("//") == path.npos);
  }
}

void check(Bytes bytes) {
  auto message = parse_message(bytes);
  if (!message.ok()) return;
  bool has_ranges = message->request.operation == Operation::kRanges;
  bool may_be_long = has_ranges || message->request.operation == Operation::kLaunch;
  bool is_long = bytes.size() == sizeof(Message);
  ATOLL_CHECK(is_long ? may_be_long : bytes.size() == sizeof(Request) && !has_ranges);
  ATOLL_CHECK(std::memcmp(&*message, bytes.data(), bytes.size()) == 0);
  check_ranges(message->ranges);
  check_volumes(message->volumes);
  ATOLL_CHECK((has_ranges ? message->volumes.count : message->ranges.count) == 0);
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
  std::copy_n(data, std::min(size, sizeof(atl::linux::OpenRanges)),
              message.data() + sizeof request);
  check(message);
  request.operation = Operation::kLaunch;
  request.cpu_millis = request.pids = 100;
  request.memory_bytes = request.disk_bytes = 64ull << 20;
  request.open_files = 1024;
  request.nonce.fill(1);
  std::fill(message.begin(), message.end(), static_cast<unsigned char>(0));
  std::memcpy(message.data(), &request, sizeof request);
  std::copy_n(data, std::min(size, sizeof(atl::linux::VolumeMounts)),
              message.data() + offsetof(Message, volumes));
  check(message);
  return 0;
}
