#include "builder/registry.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <vector>

#include "base/file.h"
#include "builder/oci_manifest.h"
#include "builder/registry_client.h"
#include "store/sha256.h"

namespace atl::builder {
namespace {

constexpr std::string_view kDefaultHost = "registry-1.docker.io";
constexpr int kMaxIndexes = 4;  // in one another
constexpr const char* kManifestTypes =
    "Accept: application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json, "
    "application/vnd.docker.distribution.manifest.v2+json";

Error invalid(std::string message) { return Error(Code::kInvalid, std::move(message)); }

bool is_host(std::string_view first) {
  return first.find('.') != first.npos || first.find(':') != first.npos || first == "localhost";
}

std::string index_of(const Digest& manifest, size_t size) {
  return "{\"schemaVersion\":2,\"manifests\":[{\"digest\":\"" + oci_digest_text(manifest) +
         "\",\"size\":" + std::to_string(size) + "}]}";
}

// Writes what comes into a file and hashes it on the way.
Result<void> fetch_blob(RegistryClient& client, const Descriptor& blob, const std::string& path) {
  ATOLL_TRY(Fd file, open_file(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0644));
  store::Sha256 hash;
  uint64_t bytes = 0;
  auto take = [&](std::string_view part) -> Result<void> {
    bytes += part.size();
    if (bytes > blob.size) return invalid("a blob is longer than its manifest says");
    hash.update(part);
    return write_all(file.get(), part);
  };
  ATOLL_TRY_VOID(client.get("/blobs/" + oci_digest_text(blob.digest), {}, take));
  if (bytes != blob.size || hash.finish() != blob.digest)
    return invalid("the registry sent other bytes than those of " + oci_digest_text(blob.digest));
  return {};
}

Result<std::string> fetch_manifest(RegistryClient& client, const std::string& version) {
  std::string text;
  auto take = [&](std::string_view part) -> Result<void> {
    if (text.size() + part.size() > kMaxManifestBytes)
      return invalid("a manifest is larger than 4 MiB");
    text += part;
    return {};
  };
  ATOLL_TRY_VOID(client.get("/manifests/" + version, {kManifestTypes}, take));
  auto digest = parse_oci_digest(version);
  if (digest && store::sha256(text) != *digest)
    return invalid("the registry sent another manifest than " + version);
  return text;
}

}  // namespace

Result<ImageReference> parse_reference(std::string_view text) {
  ImageReference reference;
  size_t slash = text.find('/');
  std::string_view rest = text;
  if (slash != text.npos && is_host(text.substr(0, slash))) {
    reference.host = text.substr(0, slash);
    rest = text.substr(slash + 1);
  }
  bool docker = reference.host.empty() || reference.host == "docker.io";
  if (docker) reference.host = kDefaultHost;
  size_t at = rest.find('@');
  if (at != rest.npos) {
    reference.version = rest.substr(at + 1);
    rest = rest.substr(0, at);
    if (!parse_oci_digest(reference.version))
      return invalid("the digest of " + std::string(text) + " is no sha256");
  }
  size_t colon = rest.find(':');
  if (colon != rest.npos) {
    if (reference.version.empty()) reference.version = rest.substr(colon + 1);
    rest = rest.substr(0, colon);
  }
  if (reference.version.empty()) reference.version = "latest";
  reference.repository = rest;
  if (docker && reference.repository.find('/') == std::string::npos)
    reference.repository = "library/" + reference.repository;
  if (rest.empty() || reference.repository.find("..") != std::string::npos)
    return invalid(std::string(text) + " names no repository");
  return reference;
}

Result<void> fetch_image(const std::string& text, int credentials, const std::string& layout) {
  ATOLL_TRY(ImageReference reference, parse_reference(text));
  ATOLL_TRY(RegistryClient client, RegistryClient::create(reference, credentials));
  std::string blobs = layout + "/blobs/sha256/";
  for (const std::string& directory : {layout, layout + "/blobs", layout + "/blobs/sha256"})
    ATOLL_TRY_VOID(make_directory(directory, 0755));
  std::string version = reference.version, manifest;
  OciDocument document;
  for (int depth = 0;; ++depth) {
    if (depth > kMaxIndexes) return invalid("the indexes of the image lead nowhere");
    ATOLL_TRY(manifest, fetch_manifest(client, version));
    ATOLL_TRY(document, parse_oci_document(manifest));
    if (!document.chosen) break;
    version = oci_digest_text(document.chosen->digest);
  }
  Digest digest = store::sha256(manifest);
  printf("%s is %s\n", text.c_str(), oci_digest_text(digest).c_str());
  ATOLL_TRY_VOID(replace_file(blobs + digest.string(), manifest, 0644));
  ATOLL_TRY_VOID(replace_file(layout + "/index.json", index_of(digest, manifest.size()), 0644));
  uint64_t total = 0;
  for (const Descriptor& layer : document.layers) total += layer.size;
  if (total > kMaxLayerBytes) return invalid("the layers of the image are larger than 16 GiB");
  for (size_t i = 0; i < document.layers.size(); ++i) {
    const Descriptor& layer = document.layers[i];
    printf("layer %zu of %zu: %llu bytes\n", i + 1, document.layers.size(),
           static_cast<unsigned long long>(layer.size));
    fflush(stdout);
    ATOLL_TRY_VOID(fetch_blob(client, layer, blobs + layer.digest.string()));
  }
  return {};
}

}  // namespace atl::builder
