#include "api/v1/sandboxes.h"

#include <algorithm>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "api/json_reader.h"
#include "api/json_reply.h"
#include "base/clock.h"
#include "sandbox/environment.h"

namespace atl::api::v1 {

namespace json = boost::json;
using sandbox::CreateSandbox;
using sandbox::Sandbox;
using sandbox::Sandboxes;

namespace {

constexpr size_t kMaxPairs = 64;
constexpr size_t kMaxPairBytes = 8 * 1024;
constexpr size_t kMaxRequired = 16;
constexpr size_t kMaxRequiredBytes = 64;

std::string to_json_text(const TextPairs& pairs) {
  json::object object;
  for (const auto& [name, value] : pairs) object[name] = value;
  return json::serialize(object);
}

isolate::OnOom parse_on_oom(ObjectReader& reader) {
  auto choice = reader.optional_text("on_oom", 16);
  if (!choice || *choice == "exec") return isolate::OnOom::kEndExec;
  if (*choice != "sandbox") reader.refuse("on_oom", "must be \"exec\" or \"sandbox\"");
  return isolate::OnOom::kEndSandbox;
}

uint32_t parse_required_extras(ObjectReader& reader) {
  uint32_t bits = 0;
  auto names = reader.optional_texts("require", kMaxRequired, kMaxRequiredBytes);
  for (const std::string& name : names.value_or(std::vector<std::string>())) {
    auto found = std::find_if(std::begin(sandbox::kExtras), std::end(sandbox::kExtras),
                              [&](const sandbox::NamedExtra& extra) { return extra.name == name; });
    if (found == std::end(sandbox::kExtras)) {
      reader.refuse("require", "may name landlock, time_namespace and simple_quotas");
    } else {
      bits |= static_cast<uint32_t>(found->extra);
    }
  }
  return bits;
}

void parse_limits(const json::object& object, CreateSandbox& request, ObjectReader& outer) {
  ObjectReader reader(object, "limits.");
  request.cpu_millis =
      reader.optional_thousandths("cpu", isolate::kMinCpuMillis, isolate::kMaxCpuMillis);
  request.memory_bytes =
      reader.optional_integer("memory_bytes", isolate::kMinMemoryBytes, isolate::kMaxMemoryBytes);
  request.pids = reader.optional_small("pids", isolate::kMinPids, isolate::kMaxPids);
  request.disk_bytes =
      reader.optional_integer("disk_bytes", isolate::kMinDiskBytes, isolate::kMaxDiskBytes);
  request.output_bytes = reader.optional_integer("output_bytes", 0, sandbox::kMaxOutputLimitBytes);
  request.open_files =
      reader.optional_small("open_files", isolate::kMinOpenFiles, isolate::kMaxOpenFiles);
  request.disk_bytes_per_second = reader.optional_integer(
      "disk_bytes_per_second", isolate::kMinDiskBytesPerSecond, isolate::kMaxDiskBytesPerSecond);
  request.cpu_time_ms = reader.optional_small("cpu_time_ms", 1, sandbox::kMaxCpuTimeMs);
  request.on_oom = parse_on_oom(reader);
  auto finished = reader.finish();
  if (!finished) outer.adopt(std::move(finished).error());
}

// Zero stands for none in rows.
json::value or_null(uint64_t number) {
  return number == 0 ? json::value(nullptr) : json::value(number);
}

json::object limits_json(const store::SandboxRow& row) {
  json::object limits;
  limits["cpu"] = row.cpu_millis / 1000.0;
  limits["memory_bytes"] = row.memory_bytes;
  limits["pids"] = row.pids;
  limits["disk_bytes"] = row.disk_bytes;
  limits["output_bytes"] = row.output_bytes;
  limits["open_files"] = row.open_files;
  limits["disk_bytes_per_second"] = or_null(row.disk_bytes_per_second);
  limits["cpu_time_ms"] = or_null(row.cpu_time_ms);
  limits["on_oom"] = row.on_oom;
  return limits;
}

json::array extras_json(uint32_t bits) {
  json::array names;
  for (const sandbox::NamedExtra& extra : sandbox::kExtras)
    if (bits & static_cast<uint32_t>(extra.extra)) names.emplace_back(extra.name);
  return names;
}

// `live` knows what no row does: its state of this moment and how long it has been idle. Null: it
// was deleted since the row was read.
json::object to_json(const store::SandboxRow& row, const Sandbox* live) {
  json::object object;
  object["id"] = row.id.view();
  object["state"] = live ? sandbox::state_name(live->state()) : row.state;
  object["template"] = row.template_name;
  object["isolation"] = "jail";
  object["limits"] = limits_json(row);
  object["require"] = extras_json(row.required_extras);
  object["ttl_ms"] = or_null(row.ttl_ms);
  object["idle_ttl_ms"] = or_null(row.idle_ttl_ms);
  std::optional<WallTime> ends_at = live ? live->lifetime().ends_at() : std::nullopt;
  object["ends_at"] = nullptr;
  if (ends_at) object["ends_at"] = to_rfc3339(*ends_at);
  WallTime created{std::chrono::milliseconds(row.created_at_ms)};
  json::error_code error;
  object["metadata"] = json::parse(row.metadata, error);
  object["generation"] = row.generation;
  object["created_at"] = to_rfc3339(created);
  if (!row.failure.empty()) object["failure"] = row.failure;
  return object;
}

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
};

Error with_refused_field(Error error) {
  for (const Refused& refused : kRefused)
    if (error.reason() == refused.reason) return std::move(error).with_field(refused.field);
  return error;
}

http::Task<Reply> create(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(CreateSandbox request, parse_create(call.body));
  auto created = co_await sandboxes.create(call.tenant, request);
  if (!created) co_return with_refused_field(std::move(created).error());
  std::shared_ptr<Sandbox> sandbox = created->sandbox;
  json::object object = to_json(sandbox->row(), sandbox.get());
  const sandbox::CreateTimings& timings = created->timings;
  json::object times;
  times["reserve_ms"] = to_ms(static_cast<uint64_t>(timings.reserve.count()));
  times["launch_ms"] = to_ms(static_cast<uint64_t>(timings.launch.count()));
  times["attach_ms"] = to_ms(static_cast<uint64_t>(timings.attach.count()));
  object["timings"] = std::move(times);
  http::Response response = json_reply(201, object);
  response.headers.add("Location", "/v1/sandboxes/" + sandbox->id().string());
  co_return std::optional(std::move(response));
}

http::Task<Reply> show(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, sandboxes));
  co_return std::optional(json_reply(200, to_json(sandbox->row(), sandbox.get())));
}

http::Task<Reply> list(Call& call, Sandboxes& sandboxes) {
  const std::string& query = call.exchange.request().query;
  auto limit = page_limit(query);
  if (!limit)
    co_return Error(Code::kInvalid, "limit must be a whole number from 1 to 1000")
        .with_reason("invalid_field")
        .with_field("limit");
  std::optional<store::SandboxCursor> after;
  if (auto cursor = http::query_parameter(query, "cursor")) {
    after = store::SandboxCursor::parse(*cursor);
    if (!after)
      co_return Error(Code::kInvalid, "cursor is not one that this API gave out")
          .with_reason("invalid_field")
          .with_field("cursor");
  }
  ATOLL_CO_TRY(auto rows, co_await sandboxes.list(call.tenant, after, *limit));
  json::array items;
  for (const store::SandboxRow& row : rows)
    items.push_back(to_json(row, sandboxes.find(call.tenant, row.id).get()));
  json::object object;
  object["sandboxes"] = std::move(items);
  object["next_cursor"] = nullptr;
  if (rows.size() == *limit) object["next_cursor"] = store::SandboxCursor::of(rows.back()).string();
  co_return std::optional(json_reply(200, object));
}

http::Task<Reply> remove(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, sandboxes));
  ATOLL_CO_TRY_VOID(co_await sandboxes.remove(call.tenant, sandbox->id()));
  http::Response response;
  response.status = 204;
  co_return std::optional(std::move(response));
}

}  // namespace

Result<CreateSandbox> parse_create(std::string_view body) {
  ATOLL_TRY(json::object object, parse_object(body));
  ObjectReader reader(object);
  CreateSandbox request;
  request.template_name = reader.text("template", 128);
  auto isolation = reader.optional_text("isolation", 32);
  if (isolation && *isolation != "jail")
    reader.refuse("isolation", "asks for a wall that this host does not offer",
                  "isolation_unavailable");
  if (const json::object* limits = reader.optional_object("limits"))
    parse_limits(*limits, request, reader);
  request.required_extras = parse_required_extras(reader);
  request.ttl_ms = reader.optional_integer("ttl_ms", 1, sandbox::kMaxTtlMs);
  request.idle_ttl_ms =
      reader.optional_integer("idle_ttl_ms", sandbox::kMinIdleTtlMs, sandbox::kMaxTtlMs);
  request.metadata = to_json_text(reader.text_pairs("metadata", kMaxPairs, kMaxPairBytes));
  TextPairs variables = reader.text_pairs("env", kMaxPairs, kMaxPairBytes);
  for (const auto& [name, value] : variables)
    if (!sandbox::is_variable_name(name))
      reader.refuse("env", "has a name that no variable can have");
  request.environment = to_json_text(variables);
  ATOLL_TRY_VOID(reader.finish());
  return request;
}

Result<std::shared_ptr<Sandbox>> named_sandbox(const Call& call, Sandboxes& sandboxes) {
  auto id = SandboxId::parse(call.parameters.at(0));
  auto sandbox = id ? sandboxes.find(call.tenant, *id) : nullptr;
  // The same answer for a malformed id, a missing sandbox and another tenant's.
  if (!sandbox)
    return Error(Code::kNotFound, "there is no such sandbox").with_reason("sandbox_not_found");
  return sandbox;
}

void add_sandbox_routes(Router& router, Sandboxes& sandboxes) {
  using http::Method;
  auto bind = [&sandboxes](auto action) {
    return [&sandboxes, action](Call& call) { return action(call, sandboxes); };
  };
  router.add({Method::kPost, "/v1/sandboxes", bind(create)});
  router.add({Method::kGet, "/v1/sandboxes", bind(list)});
  router.add({Method::kGet, "/v1/sandboxes/{id}", bind(show)});
  router.add({Method::kDelete, "/v1/sandboxes/{id}", bind(remove)});
}

}  // namespace atl::api::v1
