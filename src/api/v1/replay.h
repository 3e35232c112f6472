// POST /v1/sandboxes/{id}/replay.
#pragma once

#include "api/router.h"
#include "sandbox/sandboxes.h"
#include "sandbox/snapshots.h"

namespace atl::api::v1 {

void add_replay_route(Router& router, sandbox::Sandboxes& sandboxes, sandbox::Snapshots& snapshots);

}  // namespace atl::api::v1
