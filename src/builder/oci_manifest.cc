#include "builder/oci_manifest.h"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

namespace atl::builder {

namespace json = boost::json;

namespace {

#if defined(__aarch64__)
constexpr std::string_view kArchitecture = "arm64";
#else
constexpr std::string_view kArchitecture = "amd64";
#endif
constexpr std::string_view kDigestPrefix = "sha256:";

Error invalid(std::string message) { return Error(Code::kInvalid, std::move(message)); }

Result<json::value> parse(std::string_view text) {
  if (text.size() > kMaxManifestBytes) return invalid("a manifest is larger than 4 MiB");
  json::error_code error;
  json::value value = json::parse(text, error);
  if (error) return invalid("a manifest is not JSON: " + error.message());
  return value;
}

const json::value* find(const json::value& value, std::string_view key) {
  const json::object* object = value.if_object();
  return object == nullptr ? nullptr : object->if_contains(key);
}

std::string text_of(const json::value& value, std::string_view key) {
  const json::value* found = find(value, key);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : "";
}

Result<Descriptor> parse_descriptor(const json::value& value) {
  auto digest = parse_oci_digest(text_of(value, "digest"));
  if (!digest) return invalid("a manifest names a blob without a sha256 digest");
  const json::value* size = find(value, "size");
  if (size == nullptr || !size->is_int64() || size->get_int64() < 0 ||
      static_cast<uint64_t>(size->get_int64()) > kMaxLayerBytes)
    return invalid("a manifest names a blob without a size up to 16 GiB");
  return Descriptor{.digest = *digest,
                    .size = static_cast<uint64_t>(size->get_int64()),
                    .media_type = text_of(value, "mediaType")};
}

bool fits(const json::value& manifest) {
  const json::value* platform = find(manifest, "platform");
  if (platform == nullptr) return true;
  return text_of(*platform, "os") == "linux" && text_of(*platform, "architecture") == kArchitecture;
}

Result<OciDocument> choose(const json::array& manifests) {
  for (const json::value& manifest : manifests) {
    if (!fits(manifest)) continue;
    ATOLL_TRY(Descriptor chosen, parse_descriptor(manifest));
    return OciDocument{.chosen = std::move(chosen), .layers = {}};
  }
  return invalid("the image has no manifest for linux/" + std::string(kArchitecture));
}

}  // namespace

std::optional<Digest> parse_oci_digest(std::string_view text) {
  if (!text.starts_with(kDigestPrefix)) return std::nullopt;
  return Digest::parse(text.substr(kDigestPrefix.size()));
}

std::string oci_digest_text(const Digest& digest) {
  return std::string(kDigestPrefix) + digest.string();
}

Result<OciDocument> parse_oci_document(std::string_view text) {
  ATOLL_TRY(json::value document, parse(text));
  const json::value* manifests = find(document, "manifests");
  if (manifests != nullptr && manifests->is_array()) return choose(manifests->get_array());
  const json::value* layers = find(document, "layers");
  if (layers == nullptr || !layers->is_array())
    return invalid("a manifest has neither \"layers\" nor \"manifests\"");
  if (layers->get_array().size() > kMaxLayers) return invalid("the image has more than 256 layers");
  OciDocument made;
  for (const json::value& layer : layers->get_array()) {
    ATOLL_TRY(Descriptor descriptor, parse_descriptor(layer));
    made.layers.push_back(std::move(descriptor));
  }
  return made;
}

Result<std::vector<std::string>> parse_docker_manifest(std::string_view text) {
  ATOLL_TRY(json::value document, parse(text));
  if (!document.is_array() || document.get_array().size() != 1)
    return invalid("manifest.json must name exactly one image");
  const json::value* layers = find(document.get_array()[0], "Layers");
  if (layers == nullptr || !layers->is_array() || layers->get_array().size() > kMaxLayers)
    return invalid("manifest.json has no list of at most 256 \"Layers\"");
  std::vector<std::string> paths;
  for (const json::value& layer : layers->get_array()) {
    if (!layer.is_string()) return invalid("manifest.json has a layer that is not a path");
    paths.emplace_back(layer.get_string());
  }
  return paths;
}

}  // namespace atl::builder
