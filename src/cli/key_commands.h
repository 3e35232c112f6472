// The commands about API keys that ask the server: `atoll key create|ls|revoke`.
#pragma once

#include "base/result.h"
#include "cli/command_line.h"

namespace atl::cli {

Result<int> run_command(const CommandLine& line, const CreateKeyCommand& create);
Result<int> run_command(const CommandLine& line, const ListKeysCommand& list);
Result<int> run_command(const CommandLine& line, const RevokeKeyCommand& revoke);

}  // namespace atl::cli
