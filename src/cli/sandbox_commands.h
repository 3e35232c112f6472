// The commands about sandboxes: each is a few calls of the API and a way to show the answer.
#pragma once

#include <boost/json/object.hpp>

#include "base/result.h"
#include "cli/command_line.h"

namespace atl::cli {

Result<int> run_create(const CommandLine& line, const CreateCommand& create);
Result<int> run_list(const CommandLine& line);
Result<int> run_show(const CommandLine& line, const ShowCommand& show);
Result<int> run_remove(const CommandLine& line, const RemoveCommand& remove);

}  // namespace atl::cli
