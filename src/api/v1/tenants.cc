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

constexpr size_t kMaxProxyBytes = 300;
constexpr uint64_t kMaxSealedShareBytes = 1ull << 50;

json::object to_json(const sandbox::NamedTenant& tenant) {
  json::object object;
  object["name"] = tenant.name;
  object["e2b_internet"] = tenant.e2b_internet == E2bInternet::kAllowed ? "allow" : "deny";
  if (tenant.upstream) object["upstream"] = egress::upstream_use_json(*tenant.upstream);
  object["sealed_bytes"] = tenant.sealed_bytes;
  object["created_at"] = to_rfc3339(WallTime{std::chrono::milliseconds(tenant.created_at_ms)});
  return object;
}

http::Task<Reply> list_tenants(Call&, Tenants& tenants) {
  ATOLL_CO_TRY(auto all, co_await tenants.list());
  json::array items;
  for (const sandbox::NamedTenant& tenant : all) items.push_back(to_json(tenant));
  json::object object;
  object["tenants"] = std::move(items);
  co_return std::optional(json_reply(200, object));
}

// As in a policy. null: none any more.
sandbox::TenantUpstream parse_upstream(ObjectReader& reader) {
  const json::object* given = reader.optional_object("upstream");
  if (given == nullptr) return std::nullopt;
  ObjectReader fields(*given, "upstream.");
  std::string proxy = fields.text("proxy", kMaxProxyBytes);
  std::string credentials = fields.optional_text("credentials", kMaxProxyBytes).value_or("");
  if (auto read = fields.finish(); !read) reader.adopt(std::move(read).error());
  auto use = egress::make_upstream_use(proxy, std::move(credentials));
  if (use) return std::move(*use);
  constexpr size_t kNetwork = std::string_view("network.").size();
  reader.adopt(Error(Code::kInvalid, use.error().message().substr(kNetwork))
                   .with_reason("invalid_field")
                   .with_field(use.error().field().substr(kNetwork)));
  return std::nullopt;
}

Result<sandbox::ChangeTenant> parse_change(Call& call) {
  ATOLL_TRY(json::object body, parse_object(call.body));
  ObjectReader reader(body, "", {"upstream"});
  sandbox::ChangeTenant change_tenant{.name = call.parameters.at(0)};
  if (auto internet = reader.optional_text("e2b_internet", 16)) {
    if (*internet != "allow" && *internet != "deny")
      reader.refuse("e2b_internet", "must be allow or deny");
    change_tenant.e2b_internet =
        *internet == "allow" ? E2bInternet::kAllowed : E2bInternet::kDenied;
  }
  if (reader.has("upstream")) change_tenant.upstream = parse_upstream(reader);
  change_tenant.sealed_bytes = reader.optional_integer("sealed_bytes", 0, kMaxSealedShareBytes);
  if (!change_tenant.e2b_internet && !change_tenant.upstream && !change_tenant.sealed_bytes)
    reader.refuse("e2b_internet", "upstream or sealed_bytes is required", "missing_field");
  ATOLL_TRY_VOID(reader.finish());
  return change_tenant;
}

http::Task<Reply> change_tenant(Call& call, Tenants& tenants) {
  ATOLL_CO_TRY(sandbox::ChangeTenant wanted, parse_change(call));
  auto tenant = co_await tenants.change(std::move(wanted));
  if (!tenant && tenant.error().reason() == "secret_not_found")
    co_return std::move(tenant).error().with_field("upstream.credentials");
  if (!tenant) co_return std::move(tenant).error();
  co_return std::optional(json_reply(200, to_json(*tenant)));
}

}  // namespace

void add_tenant_routes(Router& router, Tenants& tenants) {
  auto bind = [&tenants](auto action) {
    return [&tenants, action](Call& call) { return action(call, tenants); };
  };
  constexpr auto kOperator = Route::Access::kOperator;
  router.add({http::Method::kGet, "/v1/tenants", bind(list_tenants), kOperator});
  router.add({http::Method::kPatch, "/v1/tenants/{tenant}", bind(change_tenant), kOperator});
}

}  // namespace atl::api::v1
