// E2B's control plane: sandboxes and templates, in both generations of its routes, for holders of a
// key.
#pragma once

#include "api/e2b/plane.h"
#include "api/router.h"

namespace atl::api::e2b {

void add_control_routes(Router& router, Plane plane);

}  // namespace atl::api::e2b
