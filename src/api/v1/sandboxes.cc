#include "api/v1/sandboxes.h"

#include <charconv>

#include <boost/json/array.hpp>

#include "api/json_reply.h"
#include "api/v1/sandbox_json.h"
#include "api/v1/sandbox_request.h"

namespace atl::api::v1 {

namespace json = boost::json;
using sandbox::CreateSandbox;
using sandbox::Sandbox;
using sandbox::Sandboxes;

namespace {

// The field that asked for what this host cannot do.
struct Refused {
  std::string_view reason, field;
};
constexpr Refused kRefused[] = {
    {"cpu_unavailable", "limits.cpu"},
    {"memory_unavailable", "limits.memory_bytes"},
    {"pids_unavailable", "limits.pids"},
    {"disk_unavailable", "limits.disk_bytes"},
    {"disk_rate_unavailable", "limits.disk_bytes_per_second"},
    {"open_files_unavailable", "limits.open_files"},
    {"landlock_unavailable", "require"},
    {"time_namespace_unavailable", "require"},
    {"simple_quotas_unavailable", "require"},
    {"hardware_virtualization_unavailable", "require"},
    {"memory_in_use", "limits.memory_bytes"},
};

Error with_refused_field(Error error) {
  for (const Refused& refused : kRefused)
    if (error.reason() == refused.reason) return std::move(error).with_field(refused.field);
  return error;
}

http::Response created_reply(const Sandbox& sandbox, const json::object& object) {
  http::Response response = json_reply(201, object);
  response.headers.add("Location", "/v1/sandboxes/" + sandbox.id().string());
  return response;
}

// What an earlier life of atolld, or of this call, made and did not answer with. One that was
// removed again, because it was not finished, is made anew.
std::shared_ptr<Sandbox> made_before(const Call& call, Sandboxes& sandboxes) {
  if (!call.made.sandbox) return nullptr;
  auto sandbox = sandboxes.find(call.tenant, *call.made.sandbox);
  return sandbox && sandbox->state() != sandbox::State::kDeleting ? sandbox : nullptr;
}

http::Task<Reply> create_sandbox(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(CreateSandbox request, parse_create(call.body));
  if (auto sandbox = made_before(call, sandboxes))
    co_return std::optional(created_reply(*sandbox, sandbox_json(sandbox->row(), sandbox.get())));
  request.idempotency_key = call.idempotency_key;
  auto created = co_await sandboxes.create(call.tenant, request);
  if (!created) co_return with_refused_field(std::move(created).error());
  std::shared_ptr<Sandbox> sandbox = created->sandbox;
  json::object object = sandbox_json(sandbox->row(), sandbox.get());
  if (created->origin == sandbox::Created::Origin::kFound)
    co_return std::optional(json_reply(200, object));
  const sandbox::CreateTimings& timings = created->timings;
  json::object times;
  times["reserve_ms"] = to_ms(static_cast<uint64_t>(timings.reserve.count()));
  times["launch_ms"] = to_ms(static_cast<uint64_t>(timings.launch.count()));
  times["attach_ms"] = to_ms(static_cast<uint64_t>(timings.attach.count()));
  times["from_pool"] = timings.from_pool;
  times["from_zygote"] = timings.from_zygote;
  object["timings"] = std::move(times);
  co_return std::optional(created_reply(*sandbox, object));
}

http::Task<Reply> show_sandbox(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, sandboxes));
  co_return std::optional(json_reply(200, sandbox_json(sandbox->row(), sandbox.get())));
}

http::Task<Reply> change_sandbox(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, sandboxes));
  ATOLL_CO_TRY(sandbox::ChangeSandbox request, parse_change(call.body));
  auto changed = co_await sandboxes.change(sandbox, request);
  if (!changed) co_return with_refused_field(std::move(changed).error());
  co_return std::optional(json_reply(200, sandbox_json(sandbox->row(), sandbox.get())));
}

http::Task<Reply> list_sandboxes(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(store::SandboxQuery wanted, parse_query(call.exchange.request().query));
  ATOLL_CO_TRY(auto rows, co_await sandboxes.list(call.tenant, wanted));
  json::array items;
  for (const store::SandboxRow& row : rows) {
    auto live = sandboxes.find(call.tenant, row.id);
    // Its row is behind by a moment: it is not what was asked for any more.
    if (wanted.state && live && sandbox::state_name(live->state()) != *wanted.state) continue;
    items.push_back(sandbox_json(row, live.get()));
  }
  json::object object;
  object["sandboxes"] = std::move(items);
  object["next_cursor"] = nullptr;
  if (rows.size() == wanted.limit)
    object["next_cursor"] = store::SandboxCursor::of(rows.back()).string();
  co_return std::optional(json_reply(200, object));
}

http::Task<Reply> remove_sandbox(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, sandboxes));
  ATOLL_CO_TRY_VOID(co_await sandboxes.remove(call.tenant, sandbox->id()));
  http::Response response;
  response.status = 204;
  co_return std::optional(std::move(response));
}

// A caller that keeps state about what runs inside says of which life of the sandbox it was.
Result<void> check_generation(const http::Headers& headers, const Sandbox& sandbox) {
  auto text = headers.find("Atoll-Generation");
  if (!text) return {};
  uint32_t expected = 0;
  auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), expected);
  if (error != std::errc() || end != text->data() + text->size() ||
      headers.count("Atoll-Generation") != 1)
    return Error(Code::kInvalid, "Atoll-Generation must be one whole number")
        .with_reason("invalid_field")
        .with_field("Atoll-Generation");
  if (expected == sandbox.row().generation) return {};
  return Error(Code::kConflict,
               "the sandbox is of generation " + std::to_string(sandbox.row().generation) + " now")
      .with_reason("stale_generation");
}

}  // namespace

Result<std::shared_ptr<Sandbox>> named_sandbox(const Call& call, Sandboxes& sandboxes) {
  const std::string& name = call.parameters.at(0);
  auto id = SandboxId::parse(name);
  auto sandbox = id ? sandboxes.find(call.tenant, *id) : sandboxes.find_named(call.tenant, name);
  // The same answer for a malformed id, a missing sandbox and another tenant's.
  if (!sandbox)
    return Error(Code::kNotFound, "there is no such sandbox").with_reason("sandbox_not_found");
  ATOLL_TRY_VOID(check_generation(call.exchange.request().headers, *sandbox));
  return sandbox;
}

void add_sandbox_routes(Router& router, Sandboxes& sandboxes) {
  using http::Method;
  auto bind = [&sandboxes](auto action) {
    return [&sandboxes, action](Call& call) { return action(call, sandboxes); };
  };
  router.add({.method = Method::kPost,
              .pattern = "/v1/sandboxes",
              .action = bind(create_sandbox),
              .effect = Route::Effect::kCreates});
  router.add({Method::kGet, "/v1/sandboxes", bind(list_sandboxes)});
  router.add({Method::kGet, "/v1/sandboxes/{id}", bind(show_sandbox)});
  router.add({Method::kPatch, "/v1/sandboxes/{id}", bind(change_sandbox)});
  router.add({Method::kDelete, "/v1/sandboxes/{id}", bind(remove_sandbox)});
}

}  // namespace atl::api::v1
