// `atoll secret`: values that programs in sandboxes use without knowing them.
#pragma once

#include "cli/command_line.h"

namespace atl::cli {

Result<int> run_command(const CommandLine& line, const SetSecretCommand& set);
Result<int> run_command(const CommandLine& line, const ListSecretsCommand& list);
Result<int> run_command(const CommandLine& line, const RemoveSecretCommand& remove);

}  // namespace atl::cli
