// `atoll bench`: how long a sandbox takes, as this client sees it.
#pragma once

#include "base/result.h"
#include "cli/command_line.h"

namespace atl::cli {

Result<int> run_command(const CommandLine& line, const BenchCommand& bench);

}  // namespace atl::cli
