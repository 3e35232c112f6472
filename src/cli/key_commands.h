// The commands about API keys that ask the server: `atoll key create|ls|revoke`.
#pragma once

#include "base/result.h"
#include "cli/command_line.h"

namespace atl::cli {

Result<int> run_create_key(const CommandLine& line, const CreateKeyCommand& create);
Result<int> run_list_keys(const CommandLine& line);
Result<int> run_revoke_key(const CommandLine& line, const RevokeKeyCommand& revoke);

}  // namespace atl::cli
