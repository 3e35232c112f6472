// What sandboxes use, as E2B's clients ask for it: GET /sandboxes/{id}/metrics and
// GET /sandboxes/metrics?sandbox_ids=….
#pragma once

#include "api/e2b/plane.h"
#include "api/router.h"

namespace atl::api::e2b {

void add_metrics_routes(Router& router, Plane plane);

}  // namespace atl::api::e2b
