// `atoll egress`: what a sandbox tried to reach, and what a policy would decide.
#pragma once

#include "cli/command_line.h"

namespace atl::cli {

Result<int> run_command(const CommandLine& line, const EgressCommand& egress);

}  // namespace atl::cli
