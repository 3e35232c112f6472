#include "egress/secret.h"

#include <algorithm>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "egress/secret_use.h"
#include "http/head.h"

namespace atl::egress {

namespace json = boost::json;

namespace {

constexpr size_t kMaxTextBytes = 300;
constexpr std::string_view kHole = "{}";

Error invalid(const std::string& field, const std::string& why,
              std::string_view reason = "invalid_field") {
  return Error(Code::kInvalid, field + " " + why).with_reason(reason).with_field(field);
}

Result<std::string> read_text(const json::object& object, const char* key, const std::string& field,
                              size_t most) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr) return invalid(field, "is required", "missing_field");
  const json::string* text = value->if_string();
  if (text == nullptr || text->empty() || text->size() > most)
    return invalid(field, "must be a text of 1 to " + std::to_string(most) + " bytes");
  return std::string(text->data(), text->size());
}

Result<std::vector<std::string>> read_texts(const json::object& object, const char* key,
                                            size_t most) {
  std::vector<std::string> texts;
  const json::value* value = object.if_contains(key);
  if (value == nullptr || value->is_null()) return texts;
  const json::array* list = value->if_array();
  std::string wrong = "must be a list of 1 to " + std::to_string(most) + " texts";
  if (list == nullptr || list->empty() || list->size() > most) return invalid(key, wrong);
  for (const json::value& one : *list) {
    const json::string* text = one.if_string();
    if (text == nullptr || text->size() > kMaxTextBytes) return invalid(key, wrong);
    texts.emplace_back(text->data(), text->size());
  }
  return texts;
}

Result<std::optional<HeaderForm>> read_header(const json::object& object) {
  const json::value* value = object.if_contains("header");
  if (value == nullptr || value->is_null()) return std::optional<HeaderForm>();
  const json::object* header = value->if_object();
  if (header == nullptr) return invalid("header", "must be an object with name and format");
  for (const auto& [key, entry] : *header)
    if (key != "name" && key != "format")
      return invalid("header." + std::string(key), "is unknown", "unknown_field");
  HeaderForm form;
  ATOLL_TRY(form.name, read_text(*header, "name", "header.name", kMaxTextBytes));
  if (!http::is_token(form.name)) return invalid("header.name", "is no name of a header field");
  std::string format(kHole);
  if (header->contains("format")) {
    ATOLL_TRY(format, read_text(*header, "format", "header.format", kMaxTextBytes));
  }
  size_t hole = format.find(kHole);
  bool one_hole = hole != format.npos && format.find(kHole, hole + 1) == format.npos;
  if (!one_hole || !http::is_field_value(format))
    return invalid("header.format", "must have {} once, where the value goes: \"Bearer {}\"");
  form.before = format.substr(0, hole);
  form.after = format.substr(hole + kHole.size());
  return std::optional(std::move(form));
}

// What stands in a field's value, and is not cut off at its ends.
bool is_value(std::string_view text) {
  return http::is_field_value(text) && text.front() != ' ' && text.front() != '\t' &&
         text.back() != ' ' && text.back() != '\t';
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
  if (!is_secret_name(name))
    return invalid("name", "must be letters, digits and underscore, no digit first, at most 64");
  for (const auto& [key, value] : object)
    if (key != "value" && key != "hosts" && key != "paths" && key != "header")
      return invalid(std::string(key), "is unknown", "unknown_field");
  Secret secret{.name = std::move(name), .value = {}, .hosts = {}};
  ATOLL_TRY(secret.value, read_text(object, "value", "value", kMaxSecretValueBytes));
  if (!is_value(secret.value))
    return invalid("value", "must be one line without blanks at its ends");
  ATOLL_TRY(auto hosts, read_texts(object, "hosts", kMaxSecretHosts));
  if (hosts.empty()) return invalid("hosts", "is required", "missing_field");
  for (const std::string& text : hosts) {
    auto host = HostName::parse(text);
    if (!host) return invalid("hosts", "must be names of hosts, each in full");
    secret.hosts.push_back(*host);
  }
  ATOLL_TRY(auto paths, read_texts(object, "paths", kMaxSecretPaths));
  for (const std::string& text : paths) {
    auto pattern = PathPattern::parse(text);
    if (!pattern) return invalid("paths", "is refused: " + pattern.error().message());
    secret.paths.push_back(std::move(*pattern));
  }
  ATOLL_TRY(secret.header, read_header(object));
  if (json::serialize(shown_secret(secret)).size() > kMaxSecretShownBytes)
    return invalid("hosts", "and paths are too long together: at most 2,000 bytes");
  return secret;
}

json::object shown_secret(const Secret& secret) {
  json::object object;
  object["name"] = secret.name;
  json::array hosts, paths;
  for (const HostName& host : secret.hosts) hosts.emplace_back(host.string());
  for (const PathPattern& path : secret.paths) paths.emplace_back(path.text());
  object["hosts"] = std::move(hosts);
  if (!paths.empty()) object["paths"] = std::move(paths);
  if (!secret.header) return object;
  json::object header;
  header["name"] = secret.header->name;
  header["format"] = secret.header->before + std::string(kHole) + secret.header->after;
  object["header"] = std::move(header);
  return object;
}

json::object whole_secret(const Secret& secret) {
  json::object object = shown_secret(secret);
  object.erase("name");
  object["value"] = secret.value;
  return object;
}

}  // namespace atl::egress
