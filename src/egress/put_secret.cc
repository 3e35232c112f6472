#include "egress/put_secret.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace atl::egress {

namespace json = boost::json;

namespace {

constexpr std::string_view kAbsent = "absent";
constexpr std::string_view kPresent = "present";

std::optional<std::string> take_text(json::object& object, const char* key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  std::string text(value->get_string());
  object.erase(key);
  return text;
}

}  // namespace

Result<PutSecret> parse_put_secret(std::string_view text) {
  boost::system::error_code error;
  json::value value = json::parse({text.data(), text.size()}, error);
  if (error || !value.is_object()) return Error(Code::kInvalid, "a secret is no object");
  PutSecret put{.name = {}, .fields = std::move(value.get_object())};
  auto name = take_text(put.fields, "name");
  if (!name) return Error(Code::kInvalid, "a secret has no name");
  put.name = std::move(*name);
  auto when = take_text(put.fields, "when");
  if (!when) return put;
  if (*when != kAbsent && *when != kPresent)
    return Error(Code::kInvalid, "when a secret is put is absent or present");
  put.when = *when == kAbsent ? PutSecret::When::kAbsent : PutSecret::When::kPresent;
  return put;
}

std::string put_secret_text(const Secret& secret, PutSecret::When when) {
  json::object object = whole_secret(secret);
  object["name"] = secret.name;
  if (when == PutSecret::When::kAbsent) object["when"] = kAbsent;
  if (when == PutSecret::When::kPresent) object["when"] = kPresent;
  return json::serialize(object);
}

std::string renew_secret_text(const std::string& name, const std::string& value,
                              const std::optional<std::map<std::string, std::string>>& metadata) {
  json::object object{{"name", name}, {"when", kPresent}, {"value", value}};
  if (metadata) {
    json::object pairs;
    for (const auto& [key, text] : *metadata) pairs[key] = text;
    object["metadata"] = std::move(pairs);
  }
  return json::serialize(object);
}

}  // namespace atl::egress
