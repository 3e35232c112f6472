// POST /v1/sandboxes/{id}/pause and …/resume.
#pragma once

#include "api/router.h"
#include "sandbox/sandboxes.h"

namespace atl::api::v1 {

void add_pause_routes(Router& router, sandbox::Sandboxes& sandboxes);

}  // namespace atl::api::v1
