// Running a program in a sandbox and ending as it ended: `atoll run` and `atoll exec`.
#pragma once

#include "base/result.h"
#include "cli/command_line.h"

namespace atl::cli {

Result<int> run_run(const CommandLine& line, const RunCommand& run);
Result<int> run_exec(const CommandLine& line, const ExecCommand& exec);

}  // namespace atl::cli
