// Routes of /v1/sandboxes/{id}/artifacts, also of sandboxes that are gone.
#pragma once

#include <boost/json/object.hpp>

#include "api/router.h"
#include "sandbox/artifacts.h"
#include "sandbox/sandboxes.h"

namespace atl::api::v1 {

void add_artifact_routes(Router& router, sandbox::Sandboxes& sandboxes);

boost::json::object artifact_json(const store::Artifact& artifact);

}  // namespace atl::api::v1
