#include "api/e2b/state.h"

#include <boost/json/array.hpp>

#include "api/e2b/control_route.h"
#include "api/e2b/sandbox_json.h"
#include "api/e2b/sandbox_request.h"
#include "api/json_reader.h"
#include "api/json_reply.h"
#include "api/query.h"
#include "sandbox/fork.h"
#include "sandbox/pause.h"

namespace atl::api::e2b {

namespace json = boost::json;
using http::Method;
using sandbox::Pause;
using sandbox::Sandbox;
using sandbox::State;

namespace {

constexpr uint64_t kMaxPage = 100;

std::optional<http::Response> no_content() {
  http::Response response;
  response.status = 204;
  return response;
}

Error conflict(const Call& call, const char* state) {
  return Error(Code::kConflict, "sandbox " + call.parameters.at(0) + " is " + state + " already");
}

http::Task<Reply> pause(Call& call, Plane plane) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, plane));
  ATOLL_CO_TRY_VOID(check_memory(call.body));
  if (sandbox->state() == State::kPaused) co_return conflict(call, "paused");
  ATOLL_CO_TRY_VOID(co_await Pause::begin(sandbox));
  co_return no_content();
}

// Of clients that are older than `connect`.
http::Task<Reply> resume(Call& call, Plane plane) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, plane));
  ATOLL_CO_TRY(uint64_t timeout_ms, parse_timeout(call.body, kFirstTimeoutSeconds));
  if (sandbox->state() == State::kRunning) co_return conflict(call, "running");
  co_return co_await resume_sandbox(call, plane, timeout_ms);
}

json::object snapshot_json(const store::SnapshotRow& row) {
  json::object object;
  object["snapshotID"] = row.id.view();
  json::array names;
  if (!row.label.empty()) names.push_back(json::string(row.label));
  object["names"] = std::move(names);
  return object;
}

http::Task<Reply> cut(Call& call, Plane plane) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, plane));
  std::string_view body = call.body.empty() ? "{}" : std::string_view(call.body);
  ATOLL_CO_TRY(json::object object, parse_object(body));
  ObjectReader reader(object);
  sandbox::CutSnapshot request;
  request.label = reader.optional_text("name", sandbox::kMaxLabelBytes).value_or("");
  ATOLL_CO_TRY_VOID(reader.settle());
  auto kept = co_await plane.snapshots.cut(sandbox, std::move(request));
  if (!kept) co_return std::move(kept).error();
  co_return std::optional(json_reply(201, snapshot_json(kept->row)));
}

struct SnapshotFilter {
  store::SnapshotQuery query = {};
  std::optional<std::string> name = {};
  uint64_t limit = kMaxPage;
};

Result<SnapshotFilter> parse_filter(const http::Request& request) {
  SnapshotFilter filter;
  ATOLL_TRY(auto sandbox, text_parameter("sandboxID", request));
  if (sandbox) filter.query.sandbox = parse_sandbox_id(*sandbox);
  if (sandbox && !filter.query.sandbox)
    return invalid_parameter("sandboxID", "must be the id of a sandbox");
  ATOLL_TRY(filter.name, text_parameter("name", request));
  ATOLL_TRY(auto limit, number_parameter("limit", request));
  if (limit && (*limit < 1 || *limit > kMaxPage))
    return invalid_parameter("limit", "must be from 1 to 100");
  filter.limit = limit.value_or(kMaxPage);
  ATOLL_TRY(auto token, text_parameter("nextToken", request));
  if (token && !token->empty()) filter.query.after = store::SnapshotCursor::parse(*token);
  if (token && !token->empty() && !filter.query.after)
    return invalid_parameter("nextToken", "is not one that this API gave out");
  return filter;
}

struct SnapshotName {
  std::string_view name, tag;  // no tag: "default"
};

SnapshotName split(std::string_view text) {
  size_t colon = text.find(':');
  if (colon == text.npos) return {text, "default"};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

bool is_called(const store::SnapshotRow& row, std::string_view wanted) {
  SnapshotName own = split(row.label);
  SnapshotName other = split(wanted);
  return row.reason == "asked" && own.name == other.name && own.tag == other.tag;
}

// A name without a tag stands for all of it, and an id for itself.
bool is_listed(const store::SnapshotRow& row, const SnapshotFilter& filter) {
  if (row.reason != "asked") return false;
  if (!filter.name || parse_snapshot_id(*filter.name) == row.id) return true;
  bool has_tag = filter.name->find(':') != std::string::npos;
  return has_tag ? is_called(row, *filter.name) : split(row.label).name == *filter.name;
}

http::Task<Reply> list_snapshots(Call& call, Plane plane) {
  ATOLL_CO_TRY(SnapshotFilter filter, parse_filter(call.exchange.request()));
  // All of a tenant's are one page of rows.
  static_assert(sandbox::kMaxSnapshots <= store::kMaxPageRows);
  ATOLL_CO_TRY(auto rows, co_await plane.snapshots.list(call.tenant, filter.query));
  json::array items;
  std::string next;
  for (const store::SnapshotRow& row : rows) {
    if (!is_listed(row, filter)) continue;
    if (items.size() == filter.limit) break;
    items.push_back(snapshot_json(row));
    next = store::SnapshotCursor::of(row).string();
  }
  bool full = items.size() == filter.limit;
  http::Response response = json_reply(200, items);
  if (full) response.headers.add("X-Next-Token", next);
  co_return std::optional(std::move(response));
}

http::Task<Reply> fork(Call& call, Plane plane) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, plane));
  ATOLL_CO_TRY(Fork request, parse_fork(call.body));
  if (sandbox->state() == State::kPaused) co_return sandbox::not_running(*sandbox);
  sandbox::ForkRequest wanted{.count = request.count, .ttl_ms = request.ttl_ms};
  auto forked = co_await sandbox::fork_sandbox(plane.sandboxes, plane.snapshots, sandbox, wanted);
  if (!forked) co_return std::move(forked).error();
  std::string domain = domain_of(plane, call.exchange.request());
  json::array items;
  for (const auto& made : forked->sandboxes) {
    json::object item;
    item["sandbox"] = handle_json(*made, plane, domain);
    items.push_back(std::move(item));
  }
  co_return std::optional(json_reply(201, items));
}

}  // namespace

http::Task<Result<std::optional<SnapshotId>>> find_snapshot(store::TenantId tenant, Plane plane,
                                                            std::string name) {
  store::SnapshotQuery every;
  ATOLL_CO_TRY(auto rows, co_await plane.snapshots.list(tenant, every));
  std::optional<SnapshotId> newest;  // the last of them
  for (const store::SnapshotRow& row : rows)
    if (is_called(row, name)) newest = row.id;
  co_return newest;
}

http::Task<Reply> resume_sandbox(Call& call, Plane plane, uint64_t timeout_ms) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, plane));
  ATOLL_CO_TRY_VOID(check_memory(call.body));
  sandbox::ChangeSandbox change{.ttl_ms = timeout_ms};
  ATOLL_CO_TRY_VOID(co_await plane.sandboxes.change(sandbox, change));
  ATOLL_CO_TRY_VOID(co_await Pause::end(sandbox));
  std::string domain = domain_of(plane, call.exchange.request());
  co_return std::optional(json_reply(201, handle_json(*sandbox, plane, domain)));
}

void add_state_routes(Router& router, Plane plane) {
  router.add(control_route(Method::kPost, "/sandboxes/{id}/pause", plane, pause));
  router.add(control_route(Method::kPost, "/sandboxes/{id}/resume", plane, resume));
  router.add(control_route(Method::kPost, "/sandboxes/{id}/snapshots", plane, cut));
  router.add(control_route(Method::kGet, "/snapshots", plane, list_snapshots));
  Route forks = control_route(Method::kPost, "/sandboxes/{id}/fork", plane, fork);
  forks.time = Route::Time::kLong;
  router.add(std::move(forks));
}

}  // namespace atl::api::e2b
