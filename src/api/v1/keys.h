// Routes /v1/keys: the operator makes, lists and revokes the keys of tenants.
#pragma once

#include "api/router.h"

namespace atl::api::v1 {

void add_key_routes(Router& router, sandbox::Keys& keys);

}  // namespace atl::api::v1
