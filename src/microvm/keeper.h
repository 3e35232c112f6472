// The keeper: process 1 of a jail in which a machine runs. It starts QEMU as the agent starts a
// program, behind the same walls and as the same user, hands it the template's image as a disk and
// passes the agent's stream on. The agent itself is process 1 inside of the machine; when either
// ends, so does the keeper, and with it all that is in the jail.
#pragma once

#include "base/result.h"

namespace atl::microvm {

// Returns only with an error.
Result<void> run_keeper();

}  // namespace atl::microvm
