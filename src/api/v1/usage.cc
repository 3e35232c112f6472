#include "api/v1/usage.h"

#include <boost/json/object.hpp>

#include "api/json_reply.h"
#include "api/v1/sandboxes.h"
#include "base/clock.h"
#include "sandbox/usage.h"

namespace atl::api::v1 {

namespace json = boost::json;
using sandbox::Sandbox;
using sandbox::Sandboxes;

namespace {

json::object usage_json(const store::Usage& usage, size_t running_execs) {
  WallTime since{std::chrono::milliseconds(usage.since_ms)};
  json::object object;
  object["since"] = usage.since_ms ? json::value(to_rfc3339(since)) : json::value(nullptr);
  object["execs"] = usage.execs;
  object["execs_running"] = running_execs;
  object["cpu_ms"] = usage.cpu_us / 1000;
  object["wall_ms"] = usage.wall_us / 1000;
  object["output_bytes"] = usage.output_bytes;
  object["read_bytes"] = usage.read_bytes;
  object["written_bytes"] = usage.written_bytes;
  return object;
}

http::Task<Reply> show_tenant(Call& call, Sandboxes& sandboxes) {
  sandbox::Ledger& ledger = sandboxes.services().ledger;
  ATOLL_CO_TRY(store::Usage usage, co_await sandbox::tenant_usage(ledger, call.tenant));
  size_t living = 0;
  size_t running_execs = 0;
  for (const auto& [id, sandbox] : sandboxes.all()) {
    if (!sandboxes.find(call.tenant, id)) continue;
    ++living;
    running_execs += sandbox->execs().running();
  }
  json::object object = usage_json(usage, running_execs);
  object["sandboxes"] = usage.sandboxes;
  object["sandboxes_living"] = living;
  co_return std::optional(json_reply(200, object));
}

http::Task<Reply> show_sandbox(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, sandboxes));
  sandbox::Ledger& ledger = sandboxes.services().ledger;
  ATOLL_CO_TRY(store::Usage usage,
               co_await sandbox::sandbox_usage(ledger, call.tenant, sandbox->id()));
  co_return std::optional(json_reply(200, usage_json(usage, sandbox->execs().running())));
}

}  // namespace

void add_usage_routes(Router& router, Sandboxes& sandboxes) {
  router.add({http::Method::kGet, "/v1/usage",
              [&sandboxes](Call& call) { return show_tenant(call, sandboxes); }});
  router.add({http::Method::kGet, "/v1/sandboxes/{id}/usage",
              [&sandboxes](Call& call) { return show_sandbox(call, sandboxes); }});
}

}  // namespace atl::api::v1
