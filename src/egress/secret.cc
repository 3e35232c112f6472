#include "egress/secret.h"

#include <algorithm>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "base/clock.h"
#include "egress/secret_use.h"
#include "http/head.h"

namespace atl::egress {

namespace json = boost::json;

namespace {

constexpr size_t kMaxTextBytes = 300;
constexpr size_t kMaxMetadata = 32;
constexpr size_t kMaxMetadataBytes = 1024;
constexpr std::string_view kHole = "{}";
constexpr std::string_view kKeys[] = {"value", "hosts", "paths", "header", "metadata"};

Error invalid_secret(const std::string& field, const std::string& why,
                     std::string_view reason = "invalid_field") {
  return Error(Code::kInvalid, field + " " + why).with_reason(reason).with_field(field);
}

Result<std::string> read_text(const json::object& object, const char* key, const std::string& field,
                              size_t most) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr) return invalid_secret(field, "is required", "missing_field");
  const json::string* text = value->if_string();
  if (text == nullptr || text->empty() || text->size() > most)
    return invalid_secret(field, "must be a text of 1 to " + std::to_string(most) + " bytes");
  return std::string(text->data(), text->size());
}

Result<std::vector<std::string>> read_texts(const json::object& object, const char* key,
                                            size_t most) {
  std::vector<std::string> texts;
  const json::value* value = object.if_contains(key);
  if (value == nullptr || value->is_null()) return texts;
  const json::array* list = value->if_array();
  std::string wrong = "must be a list of 1 to " + std::to_string(most) + " texts";
  if (list == nullptr || list->empty() || list->size() > most) return invalid_secret(key, wrong);
  for (const json::value& one : *list) {
    const json::string* text = one.if_string();
    if (text == nullptr || text->size() > kMaxTextBytes) return invalid_secret(key, wrong);
    texts.emplace_back(text->data(), text->size());
  }
  return texts;
}

Result<std::optional<HeaderForm>> read_header(const json::object& object) {
  const json::value* value = object.if_contains("header");
  if (value == nullptr || value->is_null()) return std::optional<HeaderForm>();
  const json::object* header = value->if_object();
  if (header == nullptr) return invalid_secret("header", "must be an object with name and format");
  for (const auto& [key, entry] : *header)
    if (key != "name" && key != "format")
      return invalid_secret("header." + std::string(key), "is unknown", "unknown_field");
  HeaderForm form;
  ATOLL_TRY(form.name, read_text(*header, "name", "header.name", kMaxTextBytes));
  if (!http::is_token(form.name))
    return invalid_secret("header.name", "is no name of a header field");
  std::string format(kHole);
  if (header->contains("format")) {
    ATOLL_TRY(format, read_text(*header, "format", "header.format", kMaxTextBytes));
  }
  size_t hole = format.find(kHole);
  bool one_hole = hole != format.npos && format.find(kHole, hole + 1) == format.npos;
  if (!one_hole || !http::is_field_value(format))
    return invalid_secret("header.format",
                          "must have {} once, where the value goes: \"Bearer {}\"");
  form.before = format.substr(0, hole);
  form.after = format.substr(hole + kHole.size());
  return std::optional(std::move(form));
}

// "hosts": []. A list that is forgotten is an error instead: the secret could go nowhere.
bool is_for_no_host(const json::object& object) {
  const json::value* hosts = object.if_contains("hosts");
  return hosts != nullptr && hosts->is_array() && hosts->get_array().empty();
}

Result<std::vector<HostName>> read_hosts(const json::object& object) {
  std::vector<HostName> hosts;
  if (is_for_no_host(object)) return hosts;
  ATOLL_TRY(auto texts, read_texts(object, "hosts", kMaxSecretHosts));
  if (texts.empty()) return invalid_secret("hosts", "is required", "missing_field");
  for (const std::string& text : texts) {
    auto host = HostName::parse(text);
    if (!host) return invalid_secret("hosts", "must be names of hosts, each in full");
    hosts.push_back(*host);
  }
  return hosts;
}

Result<std::map<std::string, std::string>> read_metadata(const json::object& object) {
  std::map<std::string, std::string> metadata;
  const json::value* value = object.if_contains("metadata");
  if (value == nullptr || value->is_null()) return metadata;
  const json::object* pairs = value->if_object();
  std::string wrong = "must be an object of at most 32 texts of at most 1024 bytes";
  if (pairs == nullptr || pairs->size() > kMaxMetadata) return invalid_secret("metadata", wrong);
  for (const auto& [key, entry] : *pairs) {
    const json::string* text = entry.if_string();
    if (text == nullptr || text->size() > kMaxMetadataBytes || key.size() > kMaxTextBytes)
      return invalid_secret("metadata", wrong);
    metadata.emplace(std::string(key), std::string(text->data(), text->size()));
  }
  return metadata;
}

Result<void> check_name(const std::string& name, bool is_variable) {
  if (is_variable && !is_secret_name(name))
    return invalid_secret("name",
                          "must be letters, digits and underscore, no digit first, at most 64");
  if (!is_kept_secret_name(name))
    return invalid_secret("name",
                          "must be letters, digits, underscore, hyphen and dot, at most 64");
  return {};
}

// What stands in a field's value, and is not cut off at its ends.
bool is_value(std::string_view text) {
  return http::is_field_value(text) && text.front() != ' ' && text.front() != '\t' &&
         text.back() != ' ' && text.back() != '\t';
}

// Where it may go.
json::object bound_secret(const Secret& secret) {
  json::object object;
  json::array hosts, paths;
  for (const HostName& host : secret.hosts) hosts.emplace_back(host.string());
  for (const PathPattern& path : secret.paths) paths.emplace_back(path.text());
  object["hosts"] = std::move(hosts);
  if (!paths.empty()) object["paths"] = std::move(paths);
  if (secret.header) {
    json::object header;
    header["name"] = secret.header->name;
    header["format"] = secret.header->before + std::string(kHole) + secret.header->after;
    object["header"] = std::move(header);
  }
  if (!secret.metadata.empty()) {
    json::object metadata;
    for (const auto& [key, text] : secret.metadata) metadata[key] = text;
    object["metadata"] = std::move(metadata);
  }
  return object;
}

void add_history(const SecretHistory& history, json::object& object) {
  auto text_of = [](int64_t at_ms) {
    return to_rfc3339(WallTime{std::chrono::milliseconds(at_ms)});
  };
  object["version"] = history.version;
  if (history.created_at_ms > 0) object["created_at"] = text_of(history.created_at_ms);
  if (history.updated_at_ms > 0) object["updated_at"] = text_of(history.updated_at_ms);
}

Result<SecretHistory> read_history(const json::value& value) {
  const json::object* object = value.if_object();
  if (object == nullptr) return Error(Code::kCorrupt, "a secret's history is no object");
  auto number = [object](const char* key) -> int64_t {
    const json::value* found = object->if_contains(key);
    const int64_t* count = found == nullptr ? nullptr : found->if_int64();
    return count == nullptr ? 0 : *count;
  };
  return SecretHistory{static_cast<uint32_t>(number("version")), number("created_at_ms"),
                       number("updated_at_ms")};
}

}  // namespace

bool Secret::is_for(const HostName& host) const {
  return std::find(hosts.begin(), hosts.end(), host) != hosts.end();
}

bool Secret::is_for_path(std::string_view path) const {
  if (paths.empty()) return true;
  auto canonical = canonical_path(path);
  auto matches = [&](const PathPattern& pattern) { return pattern.matches(*canonical); };
  return canonical && std::any_of(paths.begin(), paths.end(), matches);
}

Result<Secret> parse_secret(std::string name, const json::object& object) {
  ATOLL_TRY_VOID(check_name(name, !is_for_no_host(object)));
  for (const auto& [key, value] : object)
    if (std::find(std::begin(kKeys), std::end(kKeys), key) == std::end(kKeys))
      return invalid_secret(std::string(key), "is unknown", "unknown_field");
  Secret secret{.name = std::move(name), .value = {}, .hosts = {}};
  ATOLL_TRY(secret.value, read_text(object, "value", "value", kMaxSecretValueBytes));
  if (!is_value(secret.value))
    return invalid_secret("value", "must be one line without blanks at its ends");
  ATOLL_TRY(secret.hosts, read_hosts(object));
  ATOLL_TRY(auto paths, read_texts(object, "paths", kMaxSecretPaths));
  for (const std::string& text : paths) {
    auto pattern = PathPattern::parse(text);
    if (!pattern) return invalid_secret("paths", "is refused: " + pattern.error().message());
    secret.paths.push_back(std::move(*pattern));
  }
  ATOLL_TRY(secret.header, read_header(object));
  ATOLL_TRY(secret.metadata, read_metadata(object));
  bool is_bound_by_policy = secret.hosts.empty() && (!secret.paths.empty() || secret.header);
  if (is_bound_by_policy)
    return invalid_secret("hosts", "must name hosts, if there are paths or a header");
  if (json::serialize(bound_secret(secret)).size() > kMaxSecretShownBytes)
    return invalid_secret("hosts", "paths and metadata are too long together: at most 2,000 bytes");
  return secret;
}

json::object whole_secret(const Secret& secret) {
  json::object object = bound_secret(secret);
  object["value"] = secret.value;
  return object;
}

json::object shown_secret(const Secret& secret) {
  json::object object{{"name", secret.name}};
  for (const auto& [key, value] : bound_secret(secret)) object[key] = value;
  add_history(secret.history, object);
  return object;
}

json::object stored_secret(const Secret& secret) {
  json::object object = whole_secret(secret);
  object["history"] = json::object{{"version", secret.history.version},
                                   {"created_at_ms", secret.history.created_at_ms},
                                   {"updated_at_ms", secret.history.updated_at_ms}};
  return object;
}

Result<Secret> parse_stored_secret(std::string name, json::object object) {
  SecretHistory history;
  if (const json::value* value = object.if_contains("history")) {
    ATOLL_TRY(history, read_history(*value));
    object.erase("history");
  }
  ATOLL_TRY(Secret secret, parse_secret(std::move(name), object));
  secret.history = history;
  return secret;
}

}  // namespace atl::egress
