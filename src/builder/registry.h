// Fetching an image from an OCI registry (distribution-spec 1.1) into a layout directory.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::builder {

struct ImageReference {
  std::string host;        // with its port
  std::string repository;  // "library/python"
  std::string version;     // a tag, or "sha256:…"
};
// "python:3.11" is docker.io/library/python:3.11.
Result<ImageReference> parse_reference(std::string_view text);

// HTTPS only, but for a registry on this host's loopback. Every blob is verified against its digest
// and its size. `credentials`: a file in the form of Docker's config.json, or -1.
Result<void> fetch_image(const std::string& reference, int credentials, const std::string& layout);

}  // namespace atl::builder
