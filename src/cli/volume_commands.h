// The commands about volumes: each is a call of the API.
#pragma once

#include "base/result.h"
#include "cli/command_line.h"

namespace atl::cli {

Result<int> run_command(const CommandLine& line, const VolumeCommand& volume);

}  // namespace atl::cli
