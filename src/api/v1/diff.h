// What is different between two states of a sandbox.
#pragma once

#include "api/router.h"
#include "sandbox/snapshots.h"

namespace atl::api::v1 {

void add_diff_routes(Router& router, sandbox::Sandboxes& sandboxes, sandbox::Snapshots& snapshots);

}  // namespace atl::api::v1
