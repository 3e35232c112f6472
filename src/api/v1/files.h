// Routes of /v1/sandboxes/{id}/files/{path…} and the list of ports.
#pragma once

#include "api/router.h"
#include "sandbox/sandboxes.h"

namespace atl::api::v1 {

void add_file_routes(Router& router, sandbox::Sandboxes& sandboxes);

}  // namespace atl::api::v1
