// The objects of atolld, built and wired in the order in which they need each other, and its life:
// listen, take up what exists, serve until told to stop.
#pragma once

#include <memory>

#include "base/result.h"
#include "daemon/options.h"

namespace atl::daemon {

// Runs until SIGTERM or SIGINT. Sandboxes and their execs go on without it.
Result<void> run_daemon(const Options& options);

// Whether this program could serve what is there, without changing it or disturbing the atolld that
// serves it now.
Result<void> check_daemon(const Options& options);

// Makes the database and the files beside it one, whatever they were: from the next start on what
// no row names is set aside for a week.
Result<void> adopt_orphans(const Options& options);

}  // namespace atl::daemon
