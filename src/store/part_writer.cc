#include "store/part_writer.h"

#include "base/file.h"
#include "store/chunks.h"
#include "store/sha256.h"
#include "store/zstd.h"

namespace atl::store {

Result<void> PartWriter::add(std::string_view bytes) {
  total_bytes_ += bytes.size();
  if (total_bytes_ > kMaxSealedBytes)
    return Error(Code::kInvalid, "more than 64 GiB were written since the image")
        .with_reason("snapshot_too_large");
  buffer_.append(bytes);
  std::string_view rest = buffer_;
  while (size_t chunk = find_chunk(rest)) {
    ATOLL_TRY_VOID(put(rest.substr(0, chunk)));
    rest.remove_prefix(chunk);
  }
  buffer_.erase(0, buffer_.size() - rest.size());
  return {};
}

Result<void> PartWriter::finish() {
  if (!buffer_.empty()) ATOLL_TRY_VOID(put(buffer_));
  buffer_.clear();
  return {};
}

Result<void> PartWriter::put(std::string_view chunk) {
  ATOLL_TRY(std::string packed, compress(chunk));
  std::string_view stored = packed.size() < chunk.size() ? packed : chunk;
  SnapshotPart part{.digest = sha256(stored)};
  part.bytes = static_cast<uint32_t>(stored.size());
  part.holds = static_cast<uint32_t>(chunk.size());
  ATOLL_TRY(Blobs::Put done, hold_.put(part.digest, stored));
  if (done == Blobs::Put::kNew) new_bytes_ += stored.size();
  parts_.push_back(part);
  return {};
}

Result<std::string> read_part(const Blobs& blobs, const SnapshotPart& part) {
  ATOLL_TRY(Fd file, blobs.open(part.digest));
  auto bytes = read_all(file.get(), part.bytes);
  if (!bytes || bytes->size() != part.bytes || sha256(*bytes) != part.digest)
    return refuse_snapshot("a part is broken on disk");
  if (part.bytes == part.holds) return bytes;
  auto held = decompress(*bytes, part.holds);
  if (!held) return refuse_snapshot("a part cannot be unpacked");
  return held;
}

}  // namespace atl::store
