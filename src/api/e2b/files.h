// GET and POST /files: the bytes of files, for who has the token or a signed link. Also GET
// /health, which says whether the sandbox runs.
#pragma once

#include "api/e2b/plane.h"
#include "api/router.h"

namespace atl::api::e2b {

void add_files_routes(Router& router, Plane plane);

}  // namespace atl::api::e2b
