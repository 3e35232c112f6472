// The commands about the state of sandboxes: each is a few calls of the API.
#pragma once

#include "base/result.h"
#include "cli/command_line.h"

namespace atl::cli {

Result<int> run_command(const CommandLine& line, const PauseCommand& pause);
Result<int> run_command(const CommandLine& line, const SnapshotCommand& snapshot);
Result<int> run_command(const CommandLine& line, const ForkCommand& fork);
Result<int> run_command(const CommandLine& line, const RollbackCommand& rollback);

Result<int> run_command(const CommandLine& line, const DiffCommand& diff);
// 1 if something is different.
Result<int> run_command(const CommandLine& line, const ReplayCommand& replay);

}  // namespace atl::cli
