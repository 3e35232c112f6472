// `atoll doctor`: what this host offers, which drivers it can carry, and what to change.
#pragma once

#include "base/result.h"
#include "cli/command_line.h"
#include "cli/doctor/finding.h"

namespace atl::cli {

// Everything that is tried on this host. Nothing is left behind.
Findings examine_host(const CommandLine& line);

// The exit code: 0 when the jail is usable, else 1.
Result<int> run_command(const CommandLine& line, const DoctorCommand&);

}  // namespace atl::cli
