// Volumes of E2B's clients, which are those of /v1/volumes: made, listed and removed by holders of
// a key, and their files read and written by holders of the volume's token, whether a sandbox has
// it or not.
#pragma once

#include <boost/json/object.hpp>

#include "api/e2b/plane.h"
#include "api/router.h"

namespace atl::api::e2b {

void add_volume_routes(Router& router, Plane plane);
void add_volume_content_routes(Router& router, Plane plane);

// "volumeMounts" of a create: [{"name", "path"}], all of them to write.
Result<std::vector<sandbox::WantedVolume>> parse_volume_mounts(const boost::json::object& object);

}  // namespace atl::api::e2b
