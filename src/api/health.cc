#include "api/health.h"

#include <boost/json/object.hpp>

#include "api/json_reply.h"

namespace atl::api {

namespace {

http::Response state_reply(int status, std::string_view state) {
  boost::json::object object;
  object["status"] = state;
  object["version"] = ATOLL_VERSION;
  return json_reply(status, object);
}

}  // namespace

void add_health_routes(Router& router) {
  auto alive = [](Call&) -> http::Task<Reply> { co_return std::optional(state_reply(200, "ok")); };
  auto ready = [&router](Call&) -> http::Task<Reply> {
    http::Response response =
        router.ready() ? state_reply(200, "ready") : state_reply(503, "starting");
    co_return std::optional(std::move(response));
  };
  router.add({http::Method::kGet, "/healthz", alive, Route::Access::kPublic});
  router.add({http::Method::kGet, "/readyz", ready, Route::Access::kPublic});
}

}  // namespace atl::api
