#include "api/openapi.h"

#include "api/openapi_document.h"

namespace atl::api {

namespace {

http::Task<Reply> show(Call& call) {
  http::Response response;
  std::string tag = "\"" + std::string(kOpenapiDigest) + "\"";
  bool known = call.exchange.request().headers.lists("If-None-Match", tag);
  response.status = known ? 304 : 200;
  response.headers.add("ETag", std::move(tag));
  response.headers.add("Cache-Control", "no-cache");
  if (!known) response.headers.add("Content-Type", "application/json");
  if (!known) response.body = kOpenapiDocument;
  co_return std::optional(std::move(response));
}

}  // namespace

void add_openapi_route(Router& router) {
  router.add({http::Method::kGet, "/openapi.json", show, Route::Access::kPublic});
}

}  // namespace atl::api
