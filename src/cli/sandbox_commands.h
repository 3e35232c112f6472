// The commands about sandboxes: each is a few calls of the API and a way to show the answer.
#pragma once

#include <string>

#include <boost/json/object.hpp>

#include "base/result.h"
#include "cli/command_line.h"

namespace atl::cli {

// When a sandbox ends by itself, and how to have it later.
std::string end_text(const boost::json::object& sandbox);

Result<int> run_command(const CommandLine& line, const CreateCommand& create);
Result<int> run_command(const CommandLine& line, const ListCommand& list);
Result<int> run_command(const CommandLine& line, const ShowCommand& show);
Result<int> run_command(const CommandLine& line, const RemoveCommand& remove);
Result<int> run_command(const CommandLine& line, const UsageCommand& usage);
Result<int> run_command(const CommandLine& line, const PortsCommand& ports);

}  // namespace atl::cli
