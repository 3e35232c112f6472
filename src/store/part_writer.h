// PartWriter: cuts a stream of bytes into the parts of a snapshot, packs each and puts it among the
// blobs, unless it is there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/blobs.h"
#include "store/snapshot_manifest.h"

namespace atl::store {

// One thread at a time, which waits for the disk.
class PartWriter {
 public:
  explicit PartWriter(BlobKeeper::Hold& hold) : hold_(hold) {}

  // kInvalid with reason snapshot_too_large.
  Result<void> add(std::string_view bytes);
  Result<void> finish();

  // In their order; all of them after finish().
  const std::vector<SnapshotPart>& parts() const { return parts_; }
  uint64_t new_bytes() const { return new_bytes_; }

 private:
  Result<void> put(std::string_view chunk);

  BlobKeeper::Hold& hold_;
  std::string buffer_;
  std::vector<SnapshotPart> parts_;
  uint64_t total_bytes_ = 0;
  uint64_t new_bytes_ = 0;
};

// The bytes of a part. kCorrupt with reason snapshot_refused: they are not what it says.
Result<std::string> read_part(const Blobs& blobs, const SnapshotPart& part);

}  // namespace atl::store
