// Routes of /v1/sandboxes/{id}/contexts/{context}/runs.
#pragma once

#include "api/router.h"
#include "sandbox/sandboxes.h"

namespace atl::api::v1 {

void add_context_run_routes(Router& router, sandbox::Sandboxes& sandboxes);

}  // namespace atl::api::v1
