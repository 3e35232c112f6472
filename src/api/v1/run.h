// POST /v1/run: a sandbox for one program. Created, given files, run to its end, its artifacts
// kept, and removed, in one call.
#pragma once

#include "api/router.h"
#include "sandbox/sandboxes.h"

namespace atl::api::v1 {

void add_run_route(Router& router, sandbox::Sandboxes& sandboxes);

}  // namespace atl::api::v1
