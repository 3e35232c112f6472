#include "api/v1/pause.h"

#include "api/json_reply.h"
#include "api/v1/not_carried_json.h"
#include "api/v1/sandbox_json.h"
#include "api/v1/sandboxes.h"
#include "sandbox/pause.h"

namespace atl::api::v1 {

using sandbox::Pause;
using sandbox::Sandbox;
using sandbox::Sandboxes;

namespace {

http::Task<Reply> pause(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, sandboxes));
  ATOLL_CO_TRY_VOID(co_await Pause::begin(sandbox));
  co_return std::optional(json_reply(200, sandbox_json(sandbox->row(), sandbox.get())));
}

http::Task<Reply> resume(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, sandboxes));
  auto lost = sandbox::decode_not_carried(sandbox->row().released.value_or(""));
  ATOLL_CO_TRY_VOID(co_await Pause::end(sandbox));
  boost::json::object object = sandbox_json(sandbox->row(), sandbox.get());
  object["not_carried"] = not_carried_json(lost);
  co_return std::optional(json_reply(200, object));
}

}  // namespace

void add_pause_routes(Router& router, Sandboxes& sandboxes) {
  auto bind = [&sandboxes](auto action) {
    return [&sandboxes, action](Call& call) { return action(call, sandboxes); };
  };
  router.add({http::Method::kPost, "/v1/sandboxes/{id}/pause", bind(pause)});
  router.add({http::Method::kPost, "/v1/sandboxes/{id}/resume", bind(resume)});
}

}  // namespace atl::api::v1
