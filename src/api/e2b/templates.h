// Templates of E2B's control plane: built from steps, looked for, removed.
#pragma once

#include "api/e2b/plane.h"
#include "api/e2b/template_orders.h"
#include "api/router.h"

namespace atl::api::e2b {

void add_template_routes(Router& router, Plane plane, TemplateOrders& orders);

}  // namespace atl::api::e2b
