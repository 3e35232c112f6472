// POST /execute: runs code in a context and answers with a line of JSON for each thing that
// happens, to the end. A client that goes away interrupts its run.
#pragma once

#include "api/e2b/plane.h"
#include "api/router.h"

namespace atl::api::e2b {

http::Task<Reply> execute(Call& call, Plane plane);

// The context of the sandbox that has the id.
Result<std::shared_ptr<sandbox::Context>> named_context(sandbox::Sandbox& sandbox,
                                                        std::string_view id);

}  // namespace atl::api::e2b
