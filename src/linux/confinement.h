// What process 1 of a sandbox gives up before it is executed: resource limits, signals, and every
// capability that it does not need to start programs as any user inside.
#pragma once

#include "base/result.h"

namespace atl::linux {

// `pids` is the limit of processes, which that of pending signals follows.
Result<void> confine_agent(unsigned pids);

}  // namespace atl::linux
