// `atoll run`: a sandbox of its own for one piece of code.
#pragma once

#include "base/result.h"
#include "cli/command_line.h"

namespace atl::cli {

Result<int> run_command(const CommandLine& line, const RunCommand& run);

}  // namespace atl::cli
