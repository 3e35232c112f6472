// What a broken daemon may send to the warden, and a broken warden to the daemon. Each input is
// tried as it is and with the right magic and version, so that the checks behind those are reached
// at once.
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/check.h"
#include "warden/protocol.h"

namespace {

using namespace atl::warden;
using Bytes = std::span<const unsigned char>;

void check_request(Bytes message) {
  auto request = parse_request(message);
  if (!request.ok()) return;
  ATOLL_CHECK(std::memcmp(&*request, message.data(), sizeof(Request)) == 0);
  bool launch = request->operation == Operation::kLaunch;
  bool limits = launch || request->operation == Operation::kLimits;
  ATOLL_CHECK(limits ? request->pids >= kMinPids && request->pids <= kMaxPids
                     : request->memory_bytes == 0 && request->disk_bytes == 0);
  ATOLL_CHECK(launch || (request->open_files == 0 && request->required == 0));
  if (limits || request->operation == Operation::kRemove)
    for (char c : request->sandbox_id) ATOLL_CHECK(c != '/' && c != '.' && c != '\0');
}

void check_reply(Bytes message) {
  auto parsed = parse_reply(message);
  if (!parsed.ok()) return;
  ATOLL_CHECK(message.size() <= kMaxReplyBytes);
  ATOLL_CHECK(parsed->ids.size() == parsed->reply.id_count * sizeof(IdText));
  ATOLL_CHECK(step_name(parsed->reply.step) != "unknown");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  check_request({data, size});
  check_reply({data, size});
  std::vector<unsigned char> stamped(data, data + size);
  const uint16_t version = spoken_version();
  if (size < sizeof kMagic + sizeof version) return 0;
  std::memcpy(stamped.data(), &kMagic, sizeof kMagic);
  std::memcpy(stamped.data() + sizeof kMagic, &version, sizeof version);
  check_request(stamped);
  check_reply(stamped);
  return 0;
}
