// Running commands in a sandbox and looking at what they printed: `atoll exec` and `atoll logs`.
#pragma once

#include "base/result.h"
#include "cli/command_line.h"

namespace atl::cli {

Result<int> run_command(const CommandLine& line, const ExecCommand& exec);
Result<int> run_command(const CommandLine& line, const LogsCommand& logs);

}  // namespace atl::cli
