// Routes that need no key: is the process up, and is it ready for work?
#pragma once

#include "api/router.h"

namespace atl::api {

void add_health_routes(Router& router);

}  // namespace atl::api
