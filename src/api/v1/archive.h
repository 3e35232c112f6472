// GET and PUT /v1/sandboxes/{id}/archive: a tree as tar.
#pragma once

#include "api/router.h"
#include "sandbox/sandboxes.h"

namespace atl::api::v1 {

void add_archive_routes(Router& router, sandbox::Sandboxes& sandboxes);

}  // namespace atl::api::v1
