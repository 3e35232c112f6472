// `atoll shell`: an interactive shell in a sandbox.
#pragma once

#include "base/result.h"
#include "cli/command_line.h"

namespace atl::cli {

Result<int> run_command(const CommandLine& line, const ShellCommand& shell);

}  // namespace atl::cli
