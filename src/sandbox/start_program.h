// What a template starts in every sandbox that is made of it (section [start] of its manifest): a
// program that stays, and a command that succeeds when it is ready.
#pragma once

#include <memory>

#include "sandbox/sandbox.h"
#include "store/template_manifest.h"

namespace atl::sandbox {

// Returns when it is ready. kInvalid with reason start_failed: it ended before, or its time is up.
Task<Result<void>> start_program(Services& services, std::shared_ptr<Sandbox> sandbox,
                                 store::StartProgram wanted);

}  // namespace atl::sandbox
