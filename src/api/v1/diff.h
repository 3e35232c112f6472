// What is different between two states of a sandbox.
#pragma once

#include <boost/json/object.hpp>

#include "api/router.h"
#include "sandbox/diff.h"

namespace atl::api::v1 {

boost::json::object change_json(const sandbox::DiffChange& change);

void add_diff_routes(Router& router, sandbox::Sandboxes& sandboxes, sandbox::Snapshots& snapshots);

}  // namespace atl::api::v1
