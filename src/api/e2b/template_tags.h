// Tags of templates: names that E2B's clients give to versions of a template of theirs.
#pragma once

#include "api/e2b/plane.h"

namespace atl::api::e2b {

void add_template_tag_routes(Router& router, Plane plane);

}  // namespace atl::api::e2b
