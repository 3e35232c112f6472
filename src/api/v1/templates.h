// Routes of /v1/templates.
#pragma once

#include "api/router.h"
#include "sandbox/template_builds.h"

namespace atl::api::v1 {

void add_template_routes(Router& router, sandbox::TemplateBuilds& builds,
                         sandbox::Templates& templates);

}  // namespace atl::api::v1
