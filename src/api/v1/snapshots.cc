#include "api/v1/snapshots.h"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "api/json_reader.h"
#include "api/json_reply.h"
#include "api/query.h"
#include "api/v1/sandboxes.h"
#include "base/clock.h"

namespace atl::api::v1 {

namespace json = boost::json;
using sandbox::CutSnapshot;
using sandbox::Sandbox;
using sandbox::Sandboxes;
using sandbox::Seals;
using sandbox::Snapshots;

namespace {

constexpr size_t kMaxPairs = 64;
constexpr size_t kMaxPairBytes = 8 * 1024;

Error no_such_snapshot() {
  return Error(Code::kNotFound, "there is no such snapshot").with_reason("snapshot_not_found");
}

enum class Stage : unsigned char { kLocal, kSealed };

Stage parse_stage(ObjectReader& reader) {
  std::string stage = reader.optional_text("stage", 16).value_or("local");
  if (stage != "local" && stage != "sealed")
    reader.refuse("stage", "must be \"local\" or \"sealed\"");
  return stage == "sealed" ? Stage::kSealed : Stage::kLocal;
}

Result<CutSnapshot> parse_cut(std::string_view body, Stage& stage) {
  ATOLL_TRY(json::object object, parse_object(body));
  CutSnapshot request;
  ObjectReader reader(object);
  stage = parse_stage(reader);
  request.label = reader.optional_text("label", sandbox::kMaxLabelBytes).value_or("");
  json::object metadata;
  for (const auto& [name, value] : reader.text_pairs("metadata", kMaxPairs, kMaxPairBytes))
    metadata[name] = value;
  request.metadata = json::serialize(metadata);
  ATOLL_TRY_VOID(reader.finish());
  return request;
}

http::Response made_reply(json::object object, std::chrono::microseconds frozen) {
  object["frozen_ms"] = to_ms(static_cast<uint64_t>(frozen.count()));
  http::Response response = json_reply(201, object);
  std::string id(object.at("id").as_string());
  response.headers.add("Location", "/v1/snapshots/" + id);
  return response;
}

http::Task<Reply> cut(Call& call, Sandboxes& sandboxes, Snapshots& snapshots, Seals& seals) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, sandboxes));
  Stage stage = Stage::kLocal;
  ATOLL_CO_TRY(CutSnapshot request, parse_cut(call.body, stage));
  if (stage == Stage::kSealed) {
    auto sealed = co_await seals.cut(sandbox, std::move(request));
    if (!sealed) co_return std::move(sealed).error();
    json::object object = snapshot_json(sealed->row);
    object["new_bytes"] = sealed->new_bytes;
    co_return std::optional(made_reply(std::move(object), sealed->frozen));
  }
  auto kept = co_await snapshots.cut(sandbox, std::move(request));
  if (!kept) co_return std::move(kept).error();
  co_return std::optional(made_reply(snapshot_json(kept->row), kept->frozen));
}

Result<store::SnapshotQuery> parse_list(const http::Request& request) {
  store::SnapshotQuery query;
  auto limit = page_limit(request.query);
  if (!limit) return invalid_parameter("limit", "must be a whole number from 1 to 1000");
  query.limit = *limit;
  ATOLL_TRY(auto cursor, text_parameter("cursor", request));
  if (cursor) query.after = store::SnapshotCursor::parse(*cursor);
  if (cursor && !query.after)
    return invalid_parameter("cursor", "is not one that this API gave out");
  ATOLL_TRY(auto sandbox, text_parameter("sandbox", request));
  if (sandbox) query.sandbox = SandboxId::parse(*sandbox);
  if (sandbox && !query.sandbox) return invalid_parameter("sandbox", "must be the id of a sandbox");
  return query;
}

http::Task<Reply> list_snapshots(Call& call, Sandboxes&, Snapshots& snapshots) {
  ATOLL_CO_TRY(store::SnapshotQuery query, parse_list(call.exchange.request()));
  ATOLL_CO_TRY(auto rows, co_await snapshots.list(call.tenant, query));
  json::array items;
  for (const store::SnapshotRow& row : rows) items.push_back(snapshot_json(row));
  json::object object;
  object["snapshots"] = std::move(items);
  object["next_cursor"] = nullptr;
  if (rows.size() == query.limit)
    object["next_cursor"] = store::SnapshotCursor::of(rows.back()).string();
  co_return std::optional(json_reply(200, object));
}

http::Task<Reply> show_snapshot(Call& call, Sandboxes& sandboxes, Snapshots&) {
  auto id = SnapshotId::parse(call.parameters.at(0));
  if (!id) co_return no_such_snapshot();
  sandbox::Ledger& ledger = sandboxes.services().ledger;
  ATOLL_CO_TRY(auto row, co_await sandbox::find_snapshot(ledger, call.tenant, *id));
  co_return std::optional(json_reply(200, snapshot_json(row)));
}

http::Task<Reply> remove_snapshot(Call& call, Sandboxes&, Snapshots& snapshots) {
  auto id = SnapshotId::parse(call.parameters.at(0));
  if (!id) co_return no_such_snapshot();
  ATOLL_CO_TRY(auto children, text_parameter("children", call.exchange.request()));
  if (children && *children != "refuse" && *children != "adopt")
    co_return invalid_parameter("children", "must be \"refuse\" or \"adopt\"");
  bool adopt = children == "adopt";
  auto orphans = adopt ? store::Orphans::kAdopt : store::Orphans::kRefuse;
  ATOLL_CO_TRY_VOID(co_await snapshots.remove(call.tenant, *id, orphans));
  http::Response response;
  response.status = 204;
  co_return std::optional(std::move(response));
}

}  // namespace

json::object snapshot_json(const store::SnapshotRow& row) {
  json::object object;
  object["id"] = row.id.view();
  object["parent"] = nullptr;
  if (row.parent) object["parent"] = row.parent->view();
  object["sandbox"] = row.sandbox.view();
  object["label"] = row.label;
  json::error_code error;
  object["metadata"] = json::parse(row.metadata, error);
  object["reason"] = row.reason;
  object["stage"] = row.manifest ? "sealed" : "local";
  object["memory"] = false;
  object["isolation"] = nullptr;
  if (!row.isolation.empty()) object["isolation"] = row.isolation;
  object["template"] = row.template_name;
  object["bytes"] = row.bytes;
  object["sealed_bytes"] = nullptr;
  if (row.manifest) object["sealed_bytes"] = row.sealed_bytes;
  object["created_at"] = to_rfc3339(WallTime{std::chrono::milliseconds(row.created_at_ms)});
  return object;
}

void add_snapshot_routes(Router& router, Sandboxes& sandboxes, Snapshots& snapshots, Seals& seals) {
  using http::Method;
  auto keep = [&sandboxes, &snapshots, &seals](Call& call) {
    return cut(call, sandboxes, snapshots, seals);
  };
  auto bind = [&sandboxes, &snapshots](auto action) {
    return
        [&sandboxes, &snapshots, action](Call& call) { return action(call, sandboxes, snapshots); };
  };
  router.add({.method = Method::kPost,
              .pattern = "/v1/sandboxes/{id}/snapshots",
              .action = keep,
              .effect = Route::Effect::kCreates,
              .time = Route::Time::kLong});
  router.add({Method::kGet, "/v1/snapshots", bind(list_snapshots)});
  router.add({Method::kGet, "/v1/snapshots/{snapshot}", bind(show_snapshot)});
  router.add({Method::kDelete, "/v1/snapshots/{snapshot}", bind(remove_snapshot)});
}

}  // namespace atl::api::v1
