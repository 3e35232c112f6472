// Routes of /v1/sandboxes.
#pragma once

#include "api/router.h"
#include "sandbox/sandboxes.h"

namespace atl::api::v1 {

void add_sandbox_routes(Router& router, sandbox::Sandboxes& sandboxes);

// The sandbox that the first parameter of the call names, by id or name, for its tenant. Refuses a
// caller that expects another generation of it.
Result<std::shared_ptr<sandbox::Sandbox>> named_sandbox(const Call& call,
                                                        sandbox::Sandboxes& sandboxes);

}  // namespace atl::api::v1
