// The code interpreter: /execute and /contexts, over the contexts of the sandbox.
#pragma once

#include "api/e2b/plane.h"
#include "api/router.h"

namespace atl::api::e2b {

void add_interpreter_routes(Router& router, Plane plane);

}  // namespace atl::api::e2b
