// A route of E2B's control plane: asked with a key of the API, with errors in its shape.
#pragma once

#include "api/e2b/failure.h"
#include "api/router.h"

namespace atl::api::e2b {

// `action` is called with the call and a copy of what it `stands_on`, which outlives the router.
template <typename Ground, typename Action>
Route control_route(http::Method method, const char* pattern, Ground stands_on, Action action) {
  Route route{method, pattern, [stands_on, action](Call& call) { return action(call, stands_on); }};
  route.credential = Route::Credential::kApiKey;
  route.failure = control_failure;
  return route;
}

}  // namespace atl::api::e2b
