// A sandbox as JSON.
#pragma once

#include <boost/json/object.hpp>

#include "sandbox/sandbox.h"

namespace atl::api::v1 {

// `live` knows what no row does: its state of this moment and how long it has been idle. Null: it
// was deleted since the row was read.
boost::json::object sandbox_json(const store::SandboxRow& row, const sandbox::Sandbox* live);

}  // namespace atl::api::v1
