// Routes of /v1/sandboxes/{id}/ports: which ports programs listen on, requests relayed to them as
// to a foreign site, and private URLs that open one port without a key.
#pragma once

#include "api/router.h"
#include "sandbox/port_tokens.h"
#include "sandbox/sandboxes.h"

namespace atl::api::v1 {

void add_port_routes(Router& router, sandbox::Sandboxes& sandboxes,
                     const sandbox::PortTokens& tokens);

}  // namespace atl::api::v1
