// Snapshots: POST …/snapshots of a sandbox, GET /v1/snapshots, GET and DELETE /v1/snapshots/{s}.
#pragma once

#include <boost/json/object.hpp>

#include "api/router.h"
#include "sandbox/sandboxes.h"
#include "sandbox/seals.h"
#include "sandbox/snapshots.h"

namespace atl::api::v1 {

boost::json::object snapshot_json(const store::SnapshotRow& row);

void add_snapshot_routes(Router& router, sandbox::Sandboxes& sandboxes,
                         sandbox::Snapshots& snapshots, sandbox::Seals& seals);

}  // namespace atl::api::v1
