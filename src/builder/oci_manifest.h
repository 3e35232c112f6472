// The JSON documents of an OCI image (image-spec 1.1, and Docker's schema 2, which differs in names
// only): an index names manifests for platforms, a manifest names layers. Everything in them is
// somebody else's word; digests are what makes it true.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace atl::builder {

inline constexpr size_t kMaxManifestBytes = 4 << 20;
inline constexpr size_t kMaxLayers = 256;
inline constexpr uint64_t kMaxLayerBytes = 16ull << 30;

struct Descriptor {
  Digest digest;
  uint64_t size;
  std::string media_type;
};

struct OciDocument {
  // Of an index: the manifest for Linux on this machine.
  std::optional<Descriptor> chosen;
  // Of a manifest: from the lowest up.
  std::vector<Descriptor> layers;
};
Result<OciDocument> parse_oci_document(std::string_view text);

// manifest.json of `docker save`: paths of the layers in the archive.
Result<std::vector<std::string>> parse_docker_manifest(std::string_view text);

// "sha256:<64 digits>"
std::optional<Digest> parse_oci_digest(std::string_view text);
std::string oci_digest_text(const Digest& digest);

}  // namespace atl::builder
