#include "api/v1/keys.h"

#include <boost/json/array.hpp>

#include "api/json_reader.h"
#include "api/json_reply.h"
#include "base/clock.h"

namespace atl::api::v1 {

namespace json = boost::json;
using sandbox::Keys;

namespace {

constexpr size_t kMaxNameBytes = 63;
constexpr std::string_view kLocalTenantName = "local";

json::object to_json(const sandbox::NamedKey& key) {
  json::object object;
  object["id"] = key.id;
  object["tenant"] = key.tenant;
  object["name"] = key.name;
  object["created_at"] = to_rfc3339(WallTime{std::chrono::milliseconds(key.created_at_ms)});
  return object;
}

http::Task<Reply> create_key(Call& call, Keys& keys) {
  ATOLL_CO_TRY(json::object body, parse_object(call.body));
  ObjectReader reader(body);
  std::string tenant =
      reader.optional_text("tenant", kMaxNameBytes).value_or(std::string(kLocalTenantName));
  if (!sandbox::is_tenant_name(tenant))
    reader.refuse("tenant", "must be 1 to 63 of a-z, 0-9 and \"-\" and begin with a letter");
  std::string name = reader.optional_text("name", kMaxNameBytes).value_or("");
  if (!sandbox::is_key_name(name)) reader.refuse("name", "is reserved for the key of this host");
  bool e2b = reader.optional_boolean("e2b").value_or(false);
  ATOLL_CO_TRY_VOID(reader.finish());
  auto shape = e2b ? sandbox::KeyShape::kE2b : sandbox::KeyShape::kAtoll;
  ATOLL_CO_TRY(sandbox::NewKey created, co_await keys.create(tenant, name, shape));
  json::object object = to_json(created.named);
  object["key"] = created.key;
  co_return std::optional(json_reply(201, object));
}

http::Task<Reply> list_keys(Call&, Keys& keys) {
  ATOLL_CO_TRY(auto rows, co_await keys.list());
  json::array items;
  for (const sandbox::NamedKey& row : rows) items.push_back(to_json(row));
  json::object object;
  object["keys"] = std::move(items);
  co_return std::optional(json_reply(200, object));
}

http::Task<Reply> revoke(Call& call, Keys& keys) {
  ATOLL_CO_TRY_VOID(co_await keys.revoke(call.parameters.at(0)));
  http::Response response;
  response.status = 204;
  co_return std::optional(std::move(response));
}

}  // namespace

void add_key_routes(Router& router, Keys& keys) {
  using http::Method;
  auto bind = [&keys](auto action) {
    return [&keys, action](Call& call) { return action(call, keys); };
  };
  constexpr auto kOperator = Route::Access::kOperator;
  router.add({Method::kPost, "/v1/keys", bind(create_key), kOperator});
  router.add({Method::kGet, "/v1/keys", bind(list_keys), kOperator});
  router.add({Method::kDelete, "/v1/keys/{key}", bind(revoke), kOperator});
}

}  // namespace atl::api::v1
