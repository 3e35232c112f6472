// The commands about the files of a sandbox.
#pragma once

#include "base/result.h"
#include "cli/command_line.h"

namespace atl::cli {

Result<int> run_command(const CommandLine& line, const CopyCommand& copy);
Result<int> run_command(const CommandLine& line, const CatCommand& cat);
Result<int> run_command(const CommandLine& line, const ListFilesCommand& list);
Result<int> run_command(const CommandLine& line, const WatchCommand& watch);

}  // namespace atl::cli
