// Routes of /v1/sandboxes/{id}/egress, and those of secrets.h.
#pragma once

#include "api/router.h"
#include "sandbox/sandboxes.h"

namespace atl::api::v1 {

void add_egress_route(Router& router, sandbox::Sandboxes& sandboxes);

}  // namespace atl::api::v1
