#include "api/v1/fork.h"

#include <boost/json/array.hpp>

#include "api/json_reader.h"
#include "api/json_reply.h"
#include "api/v1/not_carried_json.h"
#include "api/v1/sandbox_json.h"
#include "api/v1/sandboxes.h"
#include "sandbox/fork.h"

namespace atl::api::v1 {

namespace json = boost::json;
using sandbox::Sandbox;
using sandbox::Sandboxes;
using sandbox::Snapshots;

namespace {

Result<uint32_t> parse_count(std::string_view body) {
  ATOLL_TRY(json::object object, parse_object(body));
  ObjectReader reader(object);
  uint32_t count = reader.optional_small("count", 1, sandbox::kMaxForks).value_or(1);
  ATOLL_TRY_VOID(reader.finish());
  return count;
}

http::Task<Reply> fork(Call& call, Sandboxes& sandboxes, Snapshots& snapshots) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, sandboxes));
  ATOLL_CO_TRY(uint32_t count, parse_count(call.body));
  sandbox::ForkRequest wanted{.count = count};
  auto forked = co_await sandbox::fork_sandbox(sandboxes, snapshots, sandbox, wanted);
  if (!forked) co_return std::move(forked).error();
  json::array made;
  for (const auto& one : forked->sandboxes) made.push_back(sandbox_json(one->row(), one.get()));
  json::object object;
  object["sandboxes"] = std::move(made);
  object["not_carried"] = not_carried_json(forked->not_carried);
  object["frozen_ms"] = to_ms(static_cast<uint64_t>(forked->frozen.count()));
  co_return std::optional(json_reply(201, object));
}

}  // namespace

void add_fork_route(Router& router, Sandboxes& sandboxes, Snapshots& snapshots) {
  auto action = [&sandboxes, &snapshots](Call& call) { return fork(call, sandboxes, snapshots); };
  router.add({.method = http::Method::kPost,
              .pattern = "/v1/sandboxes/{id}/fork",
              .action = action,
              .effect = Route::Effect::kCreates,
              .time = Route::Time::kLong});
}

}  // namespace atl::api::v1
