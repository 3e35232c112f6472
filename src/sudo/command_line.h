// The command line of sudo, as far as it means something here: there is no password, no policy and
// no terminal of its own, so the options about them are accepted and do nothing.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/protocol.h"
#include "base/result.h"

namespace atl::sudo {

struct CommandLine {
  enum class Mode : uint8_t {
    kNothing,  // -v, -k, -K, -l: always true
    kHelp,
    kVersion,
    kCommand,
    kShell,  // -s: the caller's shell, with the command, if any, as its script
    kLogin,  // -i: the same with /bin/sh and in the user's home
  };
  Mode mode = Mode::kCommand;
  std::string user = "root";
  std::optional<std::string> directory;  // -D
  std::vector<std::string> variables;    // NAME=value before the command
  std::vector<std::string> command;      // not empty with kCommand
};

inline constexpr std::string_view kUsage =
    "usage: sudo [-u user|#uid] [-D directory] [-s|-i] [NAME=value]... [--] command [argument]...";

Result<CommandLine> parse_command_line(std::span<char* const> arguments);

// What the command gets to see of itself and of its caller.
struct Caller {
  uint32_t uid;
  uint32_t gid;
  std::vector<std::string> environment;
  std::string directory;
};
agent::Start make_start(const CommandLine& line, const Caller& caller);

}  // namespace atl::sudo
