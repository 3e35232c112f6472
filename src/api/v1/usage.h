// Routes of usage: what a tenant has used, and what was used in one sandbox.
#pragma once

#include "api/router.h"
#include "sandbox/sandboxes.h"

namespace atl::api::v1 {

void add_usage_routes(Router& router, sandbox::Sandboxes& sandboxes);

}  // namespace atl::api::v1
