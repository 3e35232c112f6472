// Sandboxes as E2B's clients see them.
#pragma once

#include <string>

#include <boost/json/object.hpp>

#include "api/e2b/plane.h"
#include "sandbox/sandbox.h"

namespace atl::api::e2b {

// What a create and a connect answer with. `domain`: under which its ports are hosts.
boost::json::object handle_json(const sandbox::Sandbox& sandbox, const Plane& plane,
                                const std::string& domain);
boost::json::object listed_json(const sandbox::Sandbox& sandbox);
boost::json::object detail_json(const sandbox::Sandbox& sandbox, const Plane& plane,
                                const std::string& domain);

// The name under which the ports of this server's sandboxes are reached, with its own port, as far
// as the request shows it where none was set.
std::string domain_of(const Plane& plane, const http::Request& request);

}  // namespace atl::api::e2b
