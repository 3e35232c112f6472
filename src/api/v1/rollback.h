// A sandbox goes back to a snapshot.
#pragma once

#include "api/router.h"
#include "sandbox/snapshots.h"

namespace atl::api::v1 {

void add_rollback_route(Router& router, sandbox::Sandboxes& sandboxes,
                        sandbox::Snapshots& snapshots);

}  // namespace atl::api::v1
