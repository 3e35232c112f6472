// Sealed snapshots: POST /v1/snapshots/{s}/seal, GET /v1/snapshots/{s}/pack, and POST /v1/snapshots
// of what that gave, here or on another host.
#pragma once

#include "api/router.h"
#include "sandbox/idempotency.h"
#include "sandbox/seals.h"

namespace atl::api::v1 {

void add_seal_routes(Router& router, sandbox::Seals& seals, sandbox::Idempotency& idempotency);

}  // namespace atl::api::v1
