// Routes of /v1/secrets.
#pragma once

#include "api/router.h"
#include "sandbox/sandboxes.h"

namespace atl::api::v1 {

void add_secret_routes(Router& router, sandbox::Sandboxes& sandboxes);

}  // namespace atl::api::v1
