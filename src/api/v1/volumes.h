// Volumes: POST and GET /v1/volumes, GET and DELETE /v1/volumes/{name}; and what a create says of
// them.
#pragma once

#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "api/router.h"
#include "sandbox/sandboxes.h"

namespace atl::api::v1 {

// Takes the field `volumes` out of a create.
Result<std::vector<sandbox::WantedVolume>> take_volumes(boost::json::object& object);
boost::json::array volumes_json(const store::SandboxRow& row);

void add_volume_routes(Router& router, sandbox::Sandboxes& sandboxes);

}  // namespace atl::api::v1
