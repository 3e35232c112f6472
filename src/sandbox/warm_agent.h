// Greets the agent of an isolate that has no user yet, and has it start a program that waits.
#pragma once

#include <optional>

#include "sandbox/sandbox.h"

namespace atl::sandbox {

// Returns when the program has said that it is ready; without one, when the agent is greeted.
Task<Result<WarmAgent>> warm_agent(Services& services, SandboxId id, isolate::Nonce nonce,
                                   std::optional<agent::Start> program);

}  // namespace atl::sandbox
