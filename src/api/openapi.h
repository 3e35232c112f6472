// GET /openapi.json: the contract of this API, api/openapi.json, compiled in. tests/wire compares
// it with what the routes do.
#pragma once

#include "api/router.h"

namespace atl::api {

void add_openapi_route(Router& router);

}  // namespace atl::api
