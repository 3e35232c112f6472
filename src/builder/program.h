// Running one program of the host in a jail, with its output in the log.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace atl::builder {

struct Program {
  std::vector<std::string> arguments;  // the first is its absolute path
  std::vector<std::string> environment;
};

// An error unless it ends with 0.
Result<void> run_program(const Program& program);

// What it prints, at most 1 MiB.
Result<std::string> read_program(const Program& program);

}  // namespace atl::builder
