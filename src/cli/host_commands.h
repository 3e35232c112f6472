// The commands that start, stop and look at the Atoll of this host. Each gives the exit code.
#pragma once

#include "base/result.h"
#include "cli/command_line.h"

namespace atl::cli {

Result<int> run_command(const CommandLine& line, const UpCommand& up);
Result<int> run_command(const CommandLine& line, const DownCommand&);
Result<int> run_command(const CommandLine& line, const RestartCommand& restart);
Result<int> run_command(const CommandLine& line, const StatusCommand&);
Result<int> run_command(const CommandLine& line, const ShowKeyCommand&);

}  // namespace atl::cli
