// `atoll restore`: a state directory out of a backup, all of it or nothing.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "cli/backup/record.h"
#include "cli/command_line.h"
#include "cli/process.h"

namespace atl::cli::backup {

struct RestoreReport {
  Record record;
  uint64_t files = 0;
};

// Refuses a state directory that holds anything, a running Atoll, a file that is not as it was
// sealed, and a schema that this program does not know. The directory appears when it is whole.
Result<RestoreReport> restore_backup(const Places& places, const Identity& daemon,
                                     const std::string& file);

Result<int> run_command(const CommandLine& line, const RestoreCommand& command);

}  // namespace atl::cli::backup
