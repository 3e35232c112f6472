#include "store/snapshot_manifest.h"

#include <algorithm>
#include <set>

#include "base/bytes.h"
#include "store/chunks.h"
#include "store/sha256.h"

namespace atl::store {
namespace {

constexpr std::string_view kTitle = "ATLSNAP1";
constexpr size_t kMaxTextBytes = 64 * 1024;

void put_digest(ByteWriter& writer, const Digest& digest) {
  const auto& bytes = digest.bytes();
  writer.bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Digest take_digest(ByteReader& reader) {
  std::array<unsigned char, Digest::kBytes> bytes{};
  std::string_view taken = reader.bytes(bytes.size());
  std::copy(taken.begin(), taken.end(), bytes.begin());
  return Digest::from_bytes(bytes);
}

bool is_sound(const SnapshotManifest& manifest) {
  uint64_t stored = 0, held = 0;
  for (const SnapshotPart& part : manifest.parts) {
    if (part.bytes == 0 || part.holds < part.bytes || part.holds > kMaxChunkBytes) return false;
    stored += part.bytes;
    held += part.holds;
  }
  return !manifest.parts.empty() && stored <= kMaxSealedBytes && held <= kMaxSealedBytes;
}

struct Sections {
  std::string_view body, key, signature;
};

Result<Sections> split(std::string_view bytes) {
  if (bytes.size() < kManifestHeadBytes) return refuse_snapshot("it is cut off");
  ATOLL_TRY(size_t length, manifest_length(bytes.substr(0, kManifestHeadBytes)));
  if (bytes.size() != length) return refuse_snapshot("its manifest has another length");
  size_t seal = length - kManifestSealBytes;
  return Sections{.body = bytes.substr(kManifestHeadBytes, seal - kManifestHeadBytes),
                  .key = bytes.substr(seal, kPublicKeyBytes),
                  .signature = bytes.substr(seal + kPublicKeyBytes)};
}

Result<SnapshotManifest> decode_body(std::string_view body) {
  ByteReader reader(body);
  SnapshotManifest manifest{.image = take_digest(reader)};
  manifest.template_name = reader.text(kMaxTextBytes);
  manifest.label = reader.text(kMaxTextBytes);
  manifest.metadata = reader.text(kMaxTextBytes);
  manifest.created_at_ms = static_cast<int64_t>(reader.u64());
  manifest.cpu_millis = reader.u32();
  manifest.memory_bytes = reader.u64();
  manifest.pids = reader.u32();
  manifest.disk_bytes = reader.u64();
  for (uint32_t left = reader.u32(); left > 0 && reader.ok(); --left) {
    SnapshotPart part{.digest = take_digest(reader)};
    part.bytes = reader.u32();
    part.holds = reader.u32();
    manifest.parts.push_back(part);
  }
  if (!reader.done() || !is_sound(manifest)) return refuse_snapshot("its manifest is malformed");
  return manifest;
}

}  // namespace

Error refuse_snapshot(std::string why) {
  return Error(Code::kCorrupt, "not a good snapshot: " + std::move(why))
      .with_reason("snapshot_refused");
}

uint64_t SnapshotManifest::stored_bytes() const {
  std::set<Digest> seen;
  uint64_t bytes = 0;
  for (const SnapshotPart& part : parts)
    if (seen.insert(part.digest).second) bytes += part.bytes;
  return bytes;
}

std::string encode_body(const SnapshotManifest& manifest) {
  std::string body;
  ByteWriter writer(body);
  put_digest(writer, manifest.image);
  writer.text(manifest.template_name);
  writer.text(manifest.label);
  writer.text(manifest.metadata);
  writer.u64(static_cast<uint64_t>(manifest.created_at_ms));
  writer.u32(manifest.cpu_millis);
  writer.u64(manifest.memory_bytes);
  writer.u32(manifest.pids);
  writer.u64(manifest.disk_bytes);
  writer.u32(static_cast<uint32_t>(manifest.parts.size()));
  for (const SnapshotPart& part : manifest.parts) {
    put_digest(writer, part.digest);
    writer.u32(part.bytes);
    writer.u32(part.holds);
  }
  return body;
}

std::string signed_manifest(std::string_view body, std::string_view seal) {
  ATOLL_CHECK(seal.size() == kManifestSealBytes);
  std::string whole;
  ByteWriter writer(whole);
  writer.bytes(kTitle);
  writer.text(body);
  writer.bytes(seal);
  return whole;
}

Result<size_t> manifest_length(std::string_view head) {
  ByteReader reader(head);
  if (reader.bytes(kTitle.size()) != kTitle) return refuse_snapshot("it does not begin as one");
  size_t body = reader.u32();
  size_t length = kManifestHeadBytes + body + kManifestSealBytes;
  if (length > kMaxManifestBytes) return refuse_snapshot("its manifest is over 16 MiB");
  return length;
}

Result<SnapshotManifest> open_manifest(std::string_view bytes, const PublicKeys& keys) {
  ATOLL_TRY(Sections sections, split(bytes));
  Digest digest = sha256(sections.body);
  std::string said(kManifestPrefix);
  said.append(reinterpret_cast<const char*>(digest.bytes().data()), Digest::kBytes);
  // Its own key first: who it is from is only told of one that is whole.
  if (!is_signed_by(sections.key, said, sections.signature))
    return refuse_snapshot("its signature is not good");
  if (std::find(keys.begin(), keys.end(), sections.key) == keys.end())
    return Error(Code::kCorrupt, "the snapshot is signed by a host that is not trusted here")
        .with_reason("snapshot_untrusted");
  return decode_body(sections.body);
}

Result<SnapshotManifest> read_manifest(std::string_view bytes) {
  ATOLL_TRY(Sections sections, split(bytes));
  return decode_body(sections.body);
}

}  // namespace atl::store
