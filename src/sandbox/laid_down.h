// Machines that were laid down: warmed, saved and ended, so that others begin with their memory,
// which all of them share until they write to it. Their keeper lives on and lends it
// (agent/still_files.h); their disk is a layer as any other.
#pragma once

#include <memory>

#include "base/fd.h"
#include "sandbox/sandbox.h"

namespace atl::sandbox {

// Of an isolate that nobody else talks to. The link ends with it.
Task<Result<void>> lay_down(Services& services, SandboxId id,
                            std::shared_ptr<isolate::AgentLink> link);

// The sealed memory of one that was laid down.
Task<Result<Fd>> borrow_memory(Services& services, SandboxId id);

}  // namespace atl::sandbox
