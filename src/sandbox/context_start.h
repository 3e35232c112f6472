// Starting contexts and runs in a sandbox, which is a use of it.
#pragma once

#include "sandbox/sandbox.h"

namespace atl::sandbox {

Task<Result<std::shared_ptr<Context>>> start_context(std::shared_ptr<Sandbox> sandbox,
                                                     ContextRequest request);
Task<Result<std::shared_ptr<ContextRun>>> start_run(std::shared_ptr<Sandbox> sandbox,
                                                    std::shared_ptr<Context> context,
                                                    RunRequest request);

}  // namespace atl::sandbox
