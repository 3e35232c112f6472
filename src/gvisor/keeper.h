// The keeper: process 1 of a jail in which gVisor's sentry runs. It starts the sentry as the agent
// starts a program, as the same user and behind the same walls but for its filter, hands it the
// template's image as a file, and passes the agent's stream on. The agent is process 1 inside of
// the sentry; when either ends, so does the keeper, and with it all that is in the jail.
#pragma once

#include "base/result.h"

namespace atl::gvisor {

// Returns only with an error.
Result<void> run_keeper();

// What the keeper starts: becomes the sentry. Returns only with an error.
Result<void> run_sentry();

}  // namespace atl::gvisor
