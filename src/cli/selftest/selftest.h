// `atoll selftest`: runs hostile programs in live sandboxes of this host's Atoll and watches the
// host meanwhile. Needs root, for the host's side of it.
#pragma once

#include "base/result.h"
#include "cli/command_line.h"

namespace atl::cli::selftest {

Result<int> run_command(const CommandLine& line, const SelftestCommand& command);

}  // namespace atl::cli::selftest
