// The commands about tenants: `atoll tenant set|ls`.
#pragma once

#include "base/result.h"
#include "cli/command_line.h"

namespace atl::cli {

Result<int> run_command(const CommandLine& line, const SetTenantCommand& set);
Result<int> run_command(const CommandLine& line, const ListTenantsCommand& list);

}  // namespace atl::cli
