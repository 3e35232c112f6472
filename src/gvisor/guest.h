// Process 1 inside of gVisor's sentry: builds the sandbox's root from the image and the layer,
// forks who passes the agent's stream on to the keeper, and becomes the agent.
#pragma once

#include "agent/birth.h"
#include "base/result.h"

namespace atl::gvisor {

// The program of the host's file that process 1 is at first becomes a copy in the sentry's own
// memory.
Result<void> execute_copy();

// In the place of the agent, with the descriptors that an agent is born with where it expects them.
Result<void> become_agent();

}  // namespace atl::gvisor
