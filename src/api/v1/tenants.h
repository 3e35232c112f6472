// Routes of tenants, for the operator: who there is, and what is set for each.
#pragma once

#include "api/router.h"
#include "sandbox/tenants.h"

namespace atl::api::v1 {

void add_tenant_routes(Router& router, sandbox::Tenants& tenants);

}  // namespace atl::api::v1
