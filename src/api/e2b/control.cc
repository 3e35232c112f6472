#include "api/e2b/control.h"

#include <boost/json/array.hpp>

#include "api/e2b/control_route.h"
#include "api/e2b/sandbox_json.h"
#include "api/e2b/sandbox_list.h"
#include "api/e2b/sandbox_request.h"
#include "api/e2b/state.h"
#include "api/json_reply.h"

namespace atl::api::e2b {

namespace json = boost::json;
using http::Method;
using sandbox::Sandbox;

namespace {

struct Endpoint {
  Method method;
  const char* pattern;
};

// What the clients call and there is no such thing for.
constexpr Endpoint kMissing[] = {
    {Method::kPost, "/v2/templates"},
};

std::optional<http::Response> no_content() {
  http::Response response;
  response.status = 204;
  return response;
}

http::Task<Reply> create_sandbox(Call& call, Plane plane, uint64_t default_seconds) {
  auto ceiling = plane.tenants.e2b_internet(call.tenant);
  ATOLL_CO_TRY(sandbox::CreateSandbox request, parse_create(call.body, default_seconds, ceiling));
  if (!request.snapshot) {
    auto& templates = plane.sandboxes.templates();
    ATOLL_CO_TRY(auto known, templates.find(call.tenant, request.template_name));
    if (!known) {
      ATOLL_CO_TRY(request.snapshot,
                   co_await find_snapshot(call.tenant, plane, request.template_name));
    }
  }
  std::string domain = domain_of(plane, call.exchange.request());
  auto made = call.made.sandbox ? plane.sandboxes.find(call.tenant, *call.made.sandbox) : nullptr;
  if (!made || is_over(*made)) {
    request.idempotency_key = call.idempotency_key;
    co_await plane.rooms->wait_empty(call.tenant, request.volumes);
    ATOLL_CO_TRY(sandbox::Created created, co_await plane.sandboxes.create(call.tenant, request));
    made = created.sandbox;
    ATOLL_CO_TRY_VOID(co_await plane.tenants.hold_ceiling(made));
  }
  co_return std::optional(json_reply(201, handle_json(*made, plane, domain)));
}

http::Task<Reply> create_first(Call& call, Plane plane) {
  return create_sandbox(call, plane, kFirstTimeoutSeconds);
}

http::Task<Reply> create_second(Call& call, Plane plane) {
  return create_sandbox(call, plane, kTimeoutSeconds);
}

// The time of one that runs is only ever extended.
http::Task<Reply> connect(Call& call, Plane plane) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, plane));
  ATOLL_CO_TRY(uint64_t timeout_ms, parse_timeout(call.body, kTimeoutSeconds));
  if (sandbox->state() == sandbox::State::kPaused)
    co_return co_await resume_sandbox(call, plane, timeout_ms);
  auto ends_at = sandbox->lifetime().ends_at();
  WallTime wanted =
      plane.sandboxes.services().clock.wall_now() + std::chrono::milliseconds(timeout_ms);
  if (ends_at && *ends_at < wanted) {
    sandbox::ChangeSandbox change{.ttl_ms = timeout_ms};
    ATOLL_CO_TRY_VOID(co_await plane.sandboxes.change(sandbox, change));
  }
  std::string domain = domain_of(plane, call.exchange.request());
  co_return std::optional(json_reply(200, handle_json(*sandbox, plane, domain)));
}

http::Task<Reply> show_sandboxes(Call& call, Plane plane) {
  ATOLL_CO_TRY(SandboxPage page,
               list_sandboxes(plane.sandboxes, call.tenant, call.exchange.request()));
  json::array items;
  for (const auto& sandbox : page.sandboxes) items.push_back(listed_json(*sandbox));
  http::Response response = json_reply(200, items);
  if (!page.next_token.empty()) response.headers.add("X-Next-Token", page.next_token);
  co_return std::optional(std::move(response));
}

http::Task<Reply> show_sandbox(Call& call, Plane plane) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, plane));
  std::string domain = domain_of(plane, call.exchange.request());
  co_return std::optional(json_reply(200, detail_json(*sandbox, plane, domain)));
}

http::Task<Reply> remove_sandbox(Call& call, Plane plane) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, plane));
  ATOLL_CO_TRY_VOID(co_await plane.sandboxes.remove(call.tenant, sandbox->id()));
  co_return no_content();
}

http::Task<Reply> set_timeout(Call& call, Plane plane) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, plane));
  ATOLL_CO_TRY(uint64_t timeout_ms, parse_timeout(call.body, std::nullopt));
  sandbox::ChangeSandbox change{.ttl_ms = timeout_ms};
  ATOLL_CO_TRY_VOID(co_await plane.sandboxes.change(sandbox, change));
  co_return no_content();
}

http::Task<Reply> set_network(Call& call, Plane plane) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, plane));
  auto ceiling = plane.tenants.e2b_internet(call.tenant);
  ATOLL_CO_TRY(std::string network, parse_network(call.body, ceiling));
  sandbox::ChangeSandbox change{.network = network};
  ATOLL_CO_TRY_VOID(co_await plane.sandboxes.change(sandbox, change));
  ATOLL_CO_TRY_VOID(co_await plane.tenants.hold_ceiling(sandbox));
  co_return no_content();
}

http::Task<Reply> refuse_missing(Call& call, Plane plane) {
  bool of_sandbox = call.exchange.request().path.starts_with("/sandboxes/");
  if (of_sandbox) ATOLL_CO_TRY_VOID(named_sandbox(call, plane));
  co_return unsupported(std::string(method_name(call.exchange.request().method)) + " " +
                        call.exchange.request().path + " is not supported by Atoll");
}

}  // namespace

void add_control_routes(Router& router, Plane plane) {
  Route first = control_route(Method::kPost, "/sandboxes", plane, create_first);
  Route second = control_route(Method::kPost, "/v2/sandboxes", plane, create_second);
  for (Route* route : {&first, &second}) {
    route->effect = Route::Effect::kCreates;
    router.add(std::move(*route));
  }
  for (const char* pattern : {"/sandboxes", "/v2/sandboxes"})
    router.add(control_route(Method::kGet, pattern, plane, show_sandboxes));
  for (const char* pattern : {"/sandboxes/{id}/connect", "/v2/sandboxes/{id}/connect"})
    router.add(control_route(Method::kPost, pattern, plane, connect));
  router.add(control_route(Method::kGet, "/sandboxes/{id}", plane, show_sandbox));
  router.add(control_route(Method::kDelete, "/sandboxes/{id}", plane, remove_sandbox));
  router.add(control_route(Method::kPost, "/sandboxes/{id}/timeout", plane, set_timeout));
  router.add(control_route(Method::kPut, "/sandboxes/{id}/network", plane, set_network));
  for (const Endpoint& missing : kMissing)
    router.add(control_route(missing.method, missing.pattern, plane, refuse_missing));
}

}  // namespace atl::api::e2b
