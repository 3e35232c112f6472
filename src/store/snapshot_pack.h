// A sealed snapshot as one file: its manifest, then its parts in order, each once.
//
// The reader takes it as it comes. Nothing that follows the manifest is read before that was found
// to be signed by a key that is believed, and each part is handed on only when it is the one that
// the manifest names; so what is cut off, changed, mixed or added is refused wherever that is.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/snapshot_manifest.h"

namespace atl::store {

// The parts in the order in which they are in a file.
std::vector<SnapshotPart> parts_of_file(const SnapshotManifest& manifest);

class SnapshotPackReader {
 public:
  struct Sink {
    std::function<Result<void>(const SnapshotManifest&)> begin;
    std::function<Result<void>(const SnapshotPart&, std::string_view)> part;
  };
  SnapshotPackReader(PublicKeys keys, Sink sink) : keys_(std::move(keys)), sink_(std::move(sink)) {}

  // After an error it takes nothing more.
  Result<void> add(std::string_view bytes);
  // That nothing is missing.
  Result<void> finish() const;

  // Of one that is whole.
  const std::string& manifest_bytes() const { return manifest_bytes_; }
  const SnapshotManifest& manifest() const { return *manifest_; }

 private:
  size_t wanted() const;
  Result<void> take(std::string whole);

  PublicKeys keys_;
  Sink sink_;
  std::string buffer_;  // of what is not whole yet
  std::string manifest_bytes_;
  std::optional<SnapshotManifest> manifest_;
  std::vector<SnapshotPart> parts_;
  size_t next_ = 0;  // of parts_
  size_t manifest_length_ = 0;
  bool failed_ = false;
};

}  // namespace atl::store
