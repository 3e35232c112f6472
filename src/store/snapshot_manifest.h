// The manifest of a sealed snapshot: what it is of, and the parts that its files are in, each by
// digest and size; signed by the host that made it. Together with the parts it is all there is of a
// snapshot.
//
//   "ATLSNAP1"  u32 length of the body  body  public key (32 bytes)  signature (64 bytes)
//
// The signature is over kManifestPrefix and the SHA-256 of the body.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "store/signature.h"

namespace atl::store {

inline constexpr size_t kMaxManifestBytes = 16ull << 20;
inline constexpr uint64_t kMaxSealedBytes = 64ull << 30;  // of all parts, and of what is in them
inline constexpr size_t kManifestHeadBytes = 12;
inline constexpr size_t kManifestSealBytes = kPublicKeyBytes + kSignatureBytes;

struct SnapshotPart {
  Digest digest;       // of the stored bytes
  uint32_t bytes = 0;  // stored
  uint32_t holds = 0;  // once unpacked; the same: they are stored as they are
  bool operator==(const SnapshotPart&) const = default;
};

struct SnapshotManifest {
  Digest image;  // that the files lie on
  std::string template_name = {};
  std::string label = {};
  std::string metadata = "{}";  // JSON object
  int64_t created_at_ms = 0;
  uint32_t cpu_millis = 0;
  uint64_t memory_bytes = 0;
  uint32_t pids = 0;
  uint64_t disk_bytes = 0;
  // In this order they are the records that FileOperation::kRestore of the agent takes.
  std::vector<SnapshotPart> parts = {};

  uint64_t stored_bytes() const;  // of parts that are named twice once
};

// What is to be signed, and the whole made of it and of key and signature.
std::string encode_body(const SnapshotManifest& manifest);
std::string signed_manifest(std::string_view body, std::string_view seal);

// How long a manifest is that begins with these kManifestHeadBytes.
Result<size_t> manifest_length(std::string_view head);
// Nothing of it is looked at before its signature, by one of the keys, was. Errors are kCorrupt,
// with reason snapshot_refused, or snapshot_untrusted if it is signed by another key.
Result<SnapshotManifest> open_manifest(std::string_view bytes, const PublicKeys& keys);
// Of one that was checked when it was stored.
Result<SnapshotManifest> read_manifest(std::string_view bytes);

Error refuse_snapshot(std::string why);

}  // namespace atl::store
