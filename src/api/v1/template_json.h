// Templates and their builds as JSON.
#pragma once

#include <memory>
#include <string>

#include <boost/json/object.hpp>

#include "sandbox/template_build.h"
#include "sandbox/templates.h"

namespace atl::api::v1 {

// `build`: the newest one of that name, or null.
boost::json::object template_json(const sandbox::KnownTemplate& known,
                                  const sandbox::TemplateBuild* build);
boost::json::object build_json(const sandbox::TemplateBuild& build);

}  // namespace atl::api::v1
