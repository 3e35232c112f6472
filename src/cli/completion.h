// Scripts that let a shell complete commands, options, files and sandboxes, made from the table of
// commands.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/command_line.h"

namespace atl::cli {

std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();

Result<int> run_command(const CommandLine& line, const CompletionCommand& completion);

}  // namespace atl::cli
