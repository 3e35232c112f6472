#include "store/snapshot_pack.h"

#include <algorithm>

#include "store/sha256.h"

namespace atl::store {

std::vector<SnapshotPart> parts_of_file(const SnapshotManifest& manifest) {
  std::set<Digest> seen;
  std::vector<SnapshotPart> parts;
  for (const SnapshotPart& part : manifest.parts)
    if (seen.insert(part.digest).second) parts.push_back(part);
  return parts;
}

// How many bytes are read next, as one; 0: none.
size_t SnapshotPackReader::wanted() const {
  if (manifest_) return next_ < parts_.size() ? parts_[next_].bytes : 0;
  return manifest_length_ > 0 ? manifest_length_ : kManifestHeadBytes;
}

Result<void> SnapshotPackReader::add(std::string_view bytes) {
  if (failed_) return refuse_snapshot("it was refused before");
  failed_ = true;
  while (!bytes.empty()) {
    size_t whole = wanted();
    if (whole == 0) return refuse_snapshot("something follows its end");
    size_t count = std::min(bytes.size(), whole - buffer_.size());
    buffer_.append(bytes.substr(0, count));
    bytes.remove_prefix(count);
    if (buffer_.size() == whole) ATOLL_TRY_VOID(take(std::exchange(buffer_, {})));
  }
  failed_ = false;
  return {};
}

Result<void> SnapshotPackReader::take(std::string whole) {
  if (manifest_length_ == 0) {
    ATOLL_TRY(manifest_length_, manifest_length(whole));
    buffer_ = std::move(whole);
    return {};
  }
  if (!manifest_) {
    ATOLL_TRY(manifest_, open_manifest(whole, keys_));
    manifest_bytes_ = std::move(whole);
    parts_ = parts_of_file(*manifest_);
    return sink_.begin(*manifest_);
  }
  const SnapshotPart& part = parts_[next_++];
  if (sha256(whole) != part.digest)
    return refuse_snapshot("part " + std::to_string(next_) + " is not the one that was signed");
  return sink_.part(part, whole);
}

Result<void> SnapshotPackReader::finish() const {
  if (failed_) return refuse_snapshot("it was refused before");
  if (!manifest_ || next_ < parts_.size()) return refuse_snapshot("it is cut off");
  return {};
}

}  // namespace atl::store
