#include "api/v1/diff.h"

#include <boost/json/array.hpp>

#include "api/json_reply.h"
#include "api/query.h"
#include "api/v1/file_json.h"
#include "api/v1/sandboxes.h"
#include "sandbox/diff.h"

namespace atl::api::v1 {

namespace json = boost::json;
using sandbox::Diff;
using sandbox::DiffChange;
using sandbox::DiffRequest;
using sandbox::Sandbox;
using sandbox::Sandboxes;
using sandbox::Snapshots;

namespace {

Error no_such_snapshot() {
  return Error(Code::kNotFound, "there is no such snapshot").with_reason("snapshot_not_found");
}

std::string_view what_name(DiffChange::What what) {
  switch (what) {
    case DiffChange::What::kAdded:
      return "added";
    case DiffChange::What::kRemoved:
      return "removed";
    case DiffChange::What::kChanged:
      break;
  }
  return "changed";
}

json::value size_json(const std::optional<uint64_t>& size) {
  return size ? json::value(*size) : json::value(nullptr);
}

Result<void> parse_scope(const http::Request& request, DiffRequest& wanted) {
  ATOLL_TRY(auto path, text_parameter("path", request));
  if (path) ATOLL_TRY_VOID(sandbox::check_path(*path));
  wanted.path = path.value_or("/");
  ATOLL_TRY(wanted.text, text_parameter("text", request));
  if (wanted.text) ATOLL_TRY_VOID(sandbox::check_path(*wanted.text));
  ATOLL_TRY(auto limit, number_parameter("limit", request));
  if (limit && (*limit < 1 || *limit > sandbox::kMaxDiffChanges))
    return invalid_parameter("limit", "must be from 1 to 10000");
  if (limit) wanted.limit = static_cast<size_t>(*limit);
  return {};
}

http::Response reply_of(const DiffRequest& request, const Diff& diff) {
  json::object object;
  object["from"] = request.from.view();
  object["to"] = nullptr;
  if (request.to) object["to"] = request.to->view();
  if (request.text) {
    put_bytes(object, "path", *request.text);
    object["diff"] = diff.text;
    return json_reply(200, object);
  }
  json::array changes;
  for (const DiffChange& change : diff.changes) changes.push_back(change_json(change));
  object["changes"] = std::move(changes);
  object["truncated"] = diff.truncated;
  return json_reply(200, object);
}

// Of a snapshot, or what the sandbox was last kept as, to the sandbox as it is now.
http::Task<Reply> diff_live(Call& call, Sandboxes& sandboxes, Snapshots& snapshots) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> live, named_sandbox(call, sandboxes));
  ATOLL_CO_TRY(auto from, text_parameter("from", call.exchange.request()));
  auto id = from ? SnapshotId::parse(*from) : live->row().snapshot;
  DiffRequest request{.from = id.value_or(SnapshotId::draw())};
  request.live = live;
  ATOLL_CO_TRY_VOID(parse_scope(call.exchange.request(), request));
  if (!id) co_return no_such_snapshot();
  auto diff = co_await sandbox::make_diff(sandboxes, snapshots, call.tenant, request);
  if (!diff) co_return std::move(diff).error();
  co_return std::optional(reply_of(request, *diff));
}

http::Task<Reply> diff_kept(Call& call, Sandboxes& sandboxes, Snapshots& snapshots) {
  auto from = SnapshotId::parse(call.parameters.at(0));
  if (!from) co_return no_such_snapshot();
  ATOLL_CO_TRY(auto named, text_parameter("to", call.exchange.request()));
  if (!named) co_return invalid_parameter("to", "must be the id of a snapshot");
  DiffRequest request{.from = *from};
  request.to = SnapshotId::parse(*named);
  ATOLL_CO_TRY_VOID(parse_scope(call.exchange.request(), request));
  if (!request.to) co_return no_such_snapshot();
  auto diff = co_await sandbox::make_diff(sandboxes, snapshots, call.tenant, request);
  if (!diff) co_return std::move(diff).error();
  co_return std::optional(reply_of(request, *diff));
}

}  // namespace

json::object change_json(const DiffChange& change) {
  json::object object;
  put_bytes(object, "path", change.path);
  object["what"] = what_name(change.what);
  object["type"] = entry_type_name(change.type);
  object["size_before"] = size_json(change.size_before);
  object["size"] = size_json(change.size);
  return object;
}

void add_diff_routes(Router& router, Sandboxes& sandboxes, Snapshots& snapshots) {
  auto bind = [&sandboxes, &snapshots](auto action) {
    return
        [&sandboxes, &snapshots, action](Call& call) { return action(call, sandboxes, snapshots); };
  };
  Route live{http::Method::kGet, "/v1/sandboxes/{id}/diff", bind(diff_live)};
  Route kept{http::Method::kGet, "/v1/snapshots/{snapshot}/diff", bind(diff_kept)};
  for (Route* route : {&live, &kept}) {
    route->time = Route::Time::kLong;
    router.add(std::move(*route));
  }
}

}  // namespace atl::api::v1
