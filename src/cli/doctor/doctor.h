// `atoll doctor`: what this host offers, which drivers it can carry, and what to change.
#pragma once

#include <string>

#include <boost/json/object.hpp>

#include "base/result.h"
#include "cli/command_line.h"
#include "cli/doctor/finding.h"

namespace atl::cli {

// Everything that is tried on this host. Nothing is left behind.
Findings examine_host(const CommandLine& line);

// What a server has found about machines, as `machines` of /v1/limits says it; nothing: none says.
std::string machines_text(const boost::json::object& machines);
// The same of gVisor, `sentries`: how it runs, or that it does not.
void add_platform(Finding& finding, const boost::json::object& sentries);

// The exit code: 0 when the jail is usable, else 1.
Result<int> run_command(const CommandLine& line, const DoctorCommand&);

}  // namespace atl::cli
