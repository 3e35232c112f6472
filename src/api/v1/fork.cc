#include "api/v1/fork.h"

#include <boost/json/array.hpp>

#include "api/json_reader.h"
#include "api/json_reply.h"
#include "api/v1/sandbox_json.h"
#include "api/v1/sandboxes.h"
#include "sandbox/fork.h"

namespace atl::api::v1 {

namespace json = boost::json;
using sandbox::NotCarried;
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

json::object not_carried_json(const NotCarried& left) {
  bool exec = left.what == NotCarried::What::kExec;
  json::object object;
  object["what"] = exec ? "exec" : "context_state";
  object["id"] = left.id;
  object["why"] = exec ? "processes do not come along"
                       : "the interpreter starts again, with its language, cwd and variables";
  return object;
}

http::Task<Reply> fork(Call& call, Sandboxes& sandboxes, Snapshots& snapshots) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, sandboxes));
  ATOLL_CO_TRY(uint32_t count, parse_count(call.body));
  auto forked = co_await sandbox::fork_sandbox(sandboxes, snapshots, sandbox, count);
  if (!forked) co_return std::move(forked).error();
  json::array made, left;
  for (const auto& one : forked->sandboxes) made.push_back(sandbox_json(one->row(), one.get()));
  for (const NotCarried& one : forked->not_carried) left.push_back(not_carried_json(one));
  json::object object;
  object["sandboxes"] = std::move(made);
  object["not_carried"] = std::move(left);
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
