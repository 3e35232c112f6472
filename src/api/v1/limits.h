// GET /v1/limits: what a caller may ask for, and what is left of this host.
#pragma once

#include "api/router.h"
#include "sandbox/sandboxes.h"

namespace atl::api::v1 {

void add_limits_route(Router& router, sandbox::Sandboxes& sandboxes,
                      const sandbox::Admission& admission);

}  // namespace atl::api::v1
