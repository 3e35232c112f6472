// Route of /v1/sandboxes/{id}/receipt.
#pragma once

#include "api/router.h"
#include "sandbox/sandboxes.h"

namespace atl::api::v1 {

void add_receipt_route(Router& router, sandbox::Sandboxes& sandboxes);

}  // namespace atl::api::v1
