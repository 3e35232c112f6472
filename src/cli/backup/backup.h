// `atoll backup`: everything of a state directory that cannot be made again, in one sealed file,
// while Atoll runs or not. `atoll restore` puts it back (restore.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/backup/record.h"
#include "cli/command_line.h"
#include "cli/process.h"

namespace atl::cli::backup {

struct BackupReport {
  Record record;
  uint64_t files = 0;
  uint64_t bytes = 0;                // of the backup
  std::vector<std::string> unknown;  // stands in the state directory and is not in the backup
};

// Makes `file` with mode 0600; it appears when it is whole and replaces nothing.
Result<BackupReport> make_backup(const Places& places, const Identity& daemon,
                                 const BackupCommand& command);

Result<int> run_command(const CommandLine& line, const BackupCommand& command);

}  // namespace atl::cli::backup
