#include "api/v1/tenants.h"

#include <boost/json/array.hpp>

#include "api/json_reader.h"
#include "api/json_reply.h"
#include "base/clock.h"

namespace atl::api::v1 {

namespace json = boost::json;
using sandbox::E2bInternet;
using sandbox::Tenants;

namespace {

json::object to_json(const sandbox::NamedTenant& tenant) {
  json::object object;
  object["name"] = tenant.name;
  object["e2b_internet"] = tenant.e2b_internet == E2bInternet::kAllowed ? "allow" : "deny";
  object["created_at"] = to_rfc3339(WallTime{std::chrono::milliseconds(tenant.created_at_ms)});
  return object;
}

http::Task<Reply> list(Call&, Tenants& tenants) {
  ATOLL_CO_TRY(auto all, co_await tenants.list());
  json::array items;
  for (const sandbox::NamedTenant& tenant : all) items.push_back(to_json(tenant));
  json::object object;
  object["tenants"] = std::move(items);
  co_return std::optional(json_reply(200, object));
}

http::Task<Reply> change(Call& call, Tenants& tenants) {
  ATOLL_CO_TRY(json::object body, parse_object(call.body));
  ObjectReader reader(body);
  std::string internet = reader.text("e2b_internet", 16);
  if (internet != "allow" && internet != "deny")
    reader.refuse("e2b_internet", "must be allow or deny");
  ATOLL_CO_TRY_VOID(reader.finish());
  auto wanted = internet == "allow" ? E2bInternet::kAllowed : E2bInternet::kDenied;
  ATOLL_CO_TRY(sandbox::NamedTenant tenant, co_await tenants.set(call.parameters.at(0), wanted));
  co_return std::optional(json_reply(200, to_json(tenant)));
}

}  // namespace

void add_tenant_routes(Router& router, Tenants& tenants) {
  auto bind = [&tenants](auto action) {
    return [&tenants, action](Call& call) { return action(call, tenants); };
  };
  constexpr auto kOperator = Route::Access::kOperator;
  router.add({http::Method::kGet, "/v1/tenants", bind(list), kOperator});
  router.add({http::Method::kPatch, "/v1/tenants/{tenant}", bind(change), kOperator});
}

}  // namespace atl::api::v1
