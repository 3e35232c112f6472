#include "cli/tenant_commands.h"

#include <stdio.h>

#include "cli/api.h"
#include "cli/readable.h"

namespace atl::cli {

namespace json = boost::json;

Result<int> run_command(const CommandLine& line, const SetTenantCommand& set) {
  ATOLL_TRY(Api api, connect(line));
  std::string name = set.tenant.empty() ? "local" : set.tenant;
  json::object body;
  if (!set.e2b_internet.empty()) body["e2b_internet"] = set.e2b_internet;
  if (set.upstream == "none") {
    body["upstream"] = nullptr;
  } else if (!set.upstream.empty()) {
    json::object upstream{{"proxy", set.upstream}};
    if (!set.upstream_secret.empty()) upstream["credentials"] = set.upstream_secret;
    body["upstream"] = std::move(upstream);
  }
  if (set.sealed_bytes) body["sealed_bytes"] = *set.sealed_bytes;
  ATOLL_TRY(json::object tenant, api.call({.method = http::Method::kPatch,
                                           .target = "/v1/tenants/" + percent_encode(name),
                                           .body = std::move(body)}));
  if (line.format == Format::kJson) print_json(tenant);
  return 0;
}

Result<int> run_command(const CommandLine& line, const ListTenantsCommand&) {
  ATOLL_TRY(Api api, connect(line));
  ATOLL_TRY(json::array tenants, api.list("/v1/tenants", "tenants"));
  if (line.format == Format::kJson) {
    print_json(json::object{{"tenants", std::move(tenants)}});
    return 0;
  }
  printf("%-20s %-12s %-20s %15s %s\n", "NAME", "E2B-INTERNET", "CREATED", "SEALED-SHARE",
         "UPSTREAM");
  for (const json::value& value : tenants) {
    if (!value.is_object()) continue;
    const json::object& tenant = value.as_object();
    const json::value* given = tenant.if_contains("upstream");
    bool has_proxy = given != nullptr && given->is_object();
    printf("%-20s %-12s %-20s %15s %s\n", readable_field(tenant, "name").c_str(),
           readable_field(tenant, "e2b_internet").c_str(),
           readable_field(tenant, "created_at").c_str(),
           readable_field(tenant, "sealed_bytes").c_str(),
           has_proxy ? readable_field(given->as_object(), "proxy").c_str() : "none");
  }
  return 0;
}

}  // namespace atl::cli
