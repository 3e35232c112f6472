// The commands that start, stop and look at the Atoll of this host. Each gives the exit code.
#pragma once

#include "base/result.h"
#include "cli/command_line.h"

namespace atl::cli {

Result<int> run_up(const CommandLine& line, const UpCommand& up);
Result<int> run_down(const CommandLine& line);
Result<int> run_status(const CommandLine& line);
Result<int> run_show_key(const CommandLine& line);

}  // namespace atl::cli
