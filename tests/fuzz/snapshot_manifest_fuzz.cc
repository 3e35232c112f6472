// The manifest of a snapshot, behind its signature: whatever a host that is trusted has signed, its
// parts have sizes that can be, and it says the same when it is written again.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "store/chunks.h"
#include "store/snapshot_manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace atl::store;
  std::string_view body(reinterpret_cast<const char*>(data), size);
  std::string whole = signed_manifest(body, std::string(kManifestSealBytes, 's'));
  // No key is believed, and no signature is good.
  ATOLL_CHECK(!open_manifest(whole, {}).ok());
  auto manifest = read_manifest(whole);
  if (!manifest) return 0;
  ATOLL_CHECK(manifest->stored_bytes() <= kMaxSealedBytes && !manifest->parts.empty());
  for (const SnapshotPart& part : manifest->parts)
    ATOLL_CHECK(part.bytes > 0 && part.bytes <= part.holds && part.holds <= kMaxChunkBytes);
  ATOLL_CHECK(encode_body(*manifest) == body);
  return 0;
}
