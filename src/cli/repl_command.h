// `atoll repl`: a terminal on a context of a sandbox.
#pragma once

#include "base/result.h"
#include "cli/command_line.h"

namespace atl::cli {

Result<int> run_command(const CommandLine& line, const ReplCommand& repl);

// Whether the code of a language goes on in the next line: a bracket or a text is open, or a block
// has begun and no empty line has ended it.
bool needs_more(const std::string& language, const std::string& code);

}  // namespace atl::cli
