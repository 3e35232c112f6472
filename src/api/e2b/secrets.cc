#include "api/e2b/secrets.h"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>

#include "api/e2b/control_route.h"
#include "api/json_reader.h"
#include "api/json_reply.h"
#include "api/query.h"
#include "egress/secret.h"
#include "sandbox/file_call.h"
#include "sandbox/secrets.h"

namespace atl::api::e2b {

namespace json = boost::json;
using http::Method;
using sandbox::Secrets;

namespace {

constexpr uint64_t kMaxPage = 100;
constexpr size_t kMaxPairs = 32;
constexpr size_t kMaxPairBytes = 1024;
constexpr const char* kBeginning = "1970-01-01T00:00:00Z";

Secrets secrets_of(const Call& call, const Plane& plane) {
  return Secrets(plane.sandboxes.services().driver, call.tenant);
}

Error no_such_secret(const std::string& name) {
  return Error(Code::kNotFound, "secret " + sandbox::shown(name) + " not found")
      .with_reason("secret_not_found");
}

// From what /v1 shows. A name is unique in a tenant, so it is the id too.
json::object secret_json(const std::string& shown) {
  json::error_code error;
  json::value parsed = json::parse(shown, error);
  json::object known = parsed.is_object() ? parsed.get_object() : json::object();
  auto take = [&known](const char* key, json::value otherwise) {
    const json::value* value = known.if_contains(key);
    return value == nullptr ? otherwise : *value;
  };
  json::object object;
  object["secretID"] = take("name", "");
  object["name"] = take("name", "");
  object["currentVersion"] = take("version", 1);
  object["metadata"] = take("metadata", json::object());
  object["createdAt"] = take("created_at", kBeginning);
  object["updatedAt"] = take("updated_at", kBeginning);
  return object;
}

std::map<std::string, std::string> metadata_of(ObjectReader& reader) {
  TextPairs pairs = reader.text_pairs("metadata", kMaxPairs, kMaxPairBytes);
  return {pairs.begin(), pairs.end()};
}

http::Task<Reply> create_secret(Call& call, Plane plane) {
  ATOLL_CO_TRY(json::object object, parse_object(call.body));
  ObjectReader reader(object);
  std::string name = reader.text("name", egress::kMaxSecretValueBytes);
  json::object wanted;
  wanted["value"] = reader.text("value", egress::kMaxSecretValueBytes);
  wanted["hosts"] = json::array();
  json::object metadata;
  for (const auto& [key, text] : metadata_of(reader)) metadata[key] = text;
  wanted["metadata"] = std::move(metadata);
  ATOLL_CO_TRY_VOID(reader.settle());
  ATOLL_CO_TRY(egress::Secret secret, egress::parse_secret(std::move(name), wanted));
  Secrets secrets = secrets_of(call, plane);
  ATOLL_CO_TRY(Secrets::Put put, co_await secrets.put(std::move(secret), Secrets::When::kAbsent));
  co_return std::optional(json_reply(201, secret_json(put.shown)));
}

http::Task<Reply> renew(Call& call, Plane plane) {
  std::string name = call.parameters.at(0);
  ATOLL_CO_TRY(json::object object, parse_object(call.body));
  ObjectReader reader(object);
  std::string value = reader.text("value", egress::kMaxSecretValueBytes);
  Secrets::Metadata metadata;
  if (reader.has("metadata") && !reader.is_null("metadata")) metadata = metadata_of(reader);
  ATOLL_CO_TRY_VOID(reader.settle());
  Secrets secrets = secrets_of(call, plane);
  auto shown = co_await secrets.renew(name, std::move(value), std::move(metadata));
  if (!shown && shown.error().code() == Code::kNotFound) co_return no_such_secret(name);
  if (!shown) co_return std::move(shown).error();
  co_return std::optional(json_reply(200, secret_json(*shown)));
}

http::Task<Reply> list_secrets(Call& call, Plane plane) {
  const http::Request& request = call.exchange.request();
  ATOLL_CO_TRY(auto limit, number_parameter("limit", request));
  if (limit && (*limit < 1 || *limit > kMaxPage))
    co_return invalid_parameter("limit", "must be from 1 to 100");
  ATOLL_CO_TRY(auto token, text_parameter("nextToken", request));
  Secrets secrets = secrets_of(call, plane);
  ATOLL_CO_TRY(auto shown, co_await secrets.list());
  auto next = shown.upper_bound(token.value_or(""));
  json::array items;
  std::string last;
  for (; next != shown.end() && items.size() < limit.value_or(kMaxPage); ++next) {
    items.push_back(secret_json(next->second));
    last = next->first;
  }
  http::Response response = json_reply(200, items);
  if (next != shown.end()) response.headers.add("X-Next-Token", last);
  co_return std::optional(std::move(response));
}

http::Task<Reply> show_secret(Call& call, Plane plane) {
  Secrets secrets = secrets_of(call, plane);
  ATOLL_CO_TRY(auto shown, co_await secrets.list());
  auto found = shown.find(call.parameters.at(0));
  if (found == shown.end()) co_return no_such_secret(call.parameters.at(0));
  co_return std::optional(json_reply(200, secret_json(found->second)));
}

http::Task<Reply> remove_secret(Call& call, Plane plane) {
  std::string name = call.parameters.at(0);
  Secrets secrets = secrets_of(call, plane);
  auto removed = co_await secrets.remove(name);
  if (!removed && removed.error().code() == Code::kNotFound) co_return no_such_secret(name);
  if (!removed) co_return std::move(removed).error();
  http::Response response;
  response.status = 204;
  co_return std::optional(std::move(response));
}

}  // namespace

void add_secret_routes(Router& router, Plane plane) {
  router.add(control_route(Method::kGet, "/secrets", plane, list_secrets));
  router.add(control_route(Method::kPost, "/secrets", plane, create_secret));
  router.add(control_route(Method::kGet, "/secrets/{secret}", plane, show_secret));
  router.add(control_route(Method::kPost, "/secrets/{secret}", plane, renew));
  router.add(control_route(Method::kDelete, "/secrets/{secret}", plane, remove_secret));
}

}  // namespace atl::api::e2b
