#include "api/v1/rollback.h"

#include "api/json_reader.h"
#include "api/json_reply.h"
#include "api/v1/not_carried_json.h"
#include "api/v1/sandbox_json.h"
#include "api/v1/sandboxes.h"

namespace atl::api::v1 {

namespace json = boost::json;
using sandbox::Sandbox;
using sandbox::Sandboxes;
using sandbox::Snapshots;

namespace {

Result<SnapshotId> parse_target(std::string_view body) {
  ATOLL_TRY(json::object object, parse_object(body));
  ObjectReader reader(object);
  auto id = SnapshotId::parse(reader.text("snapshot", SnapshotId::kLength));
  if (!id) reader.refuse("snapshot", "is not the id of a snapshot");
  ATOLL_TRY_VOID(reader.finish());
  return *id;
}

http::Task<Reply> roll_back(Call& call, Sandboxes& sandboxes, Snapshots& snapshots) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, sandboxes));
  ATOLL_CO_TRY(SnapshotId target, parse_target(call.body));
  auto done = co_await snapshots.roll_back(sandbox, target);
  if (!done) co_return std::move(done).error();
  json::object object;
  object["sandbox"] = sandbox_json(done->sandbox->row(), done->sandbox.get());
  object["undo"] = done->undo->view();
  object["not_carried"] = not_carried_json(done->not_carried);
  co_return std::optional(json_reply(200, object));
}

}  // namespace

void add_rollback_route(Router& router, Sandboxes& sandboxes, Snapshots& snapshots) {
  auto action = [&sandboxes, &snapshots](Call& call) {
    return roll_back(call, sandboxes, snapshots);
  };
  router.add({.method = http::Method::kPost,
              .pattern = "/v1/sandboxes/{id}/rollback",
              .action = action,
              .time = Route::Time::kLong});
}

}  // namespace atl::api::v1
