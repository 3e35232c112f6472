// Service process.Process.
#pragma once

#include "api/e2b/plane.h"
#include "api/router.h"

namespace atl::api::e2b {

void add_process_routes(Router& router, Plane plane);

}  // namespace atl::api::e2b
