// The reader of argv: words become one typed command, or an error of usage.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/commands.h"
#include "cli/places.h"
#include "cli/server.h"

namespace atl::cli {

enum class Format : unsigned char { kText, kJson };

struct CommandLine {
  Places places;
  ServerChoice server;
  Format format = Format::kText;
  Command command;
};

// `arguments` without the program's name. Every error is one of usage.
Result<CommandLine> parse_command_line(std::vector<std::string> arguments);

}  // namespace atl::cli
