// Secrets of E2B's clients: those of /v1/secrets. One that these clients make is for no host by
// itself: `network.rules` of a sandbox say where it goes.
#pragma once

#include "api/e2b/plane.h"

namespace atl::api::e2b {

void add_secret_routes(Router& router, Plane plane);

}  // namespace atl::api::e2b
