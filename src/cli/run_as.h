// Work on files of somebody less trusted is done as that user, in a process of its own: what they
// hold can then mislead nobody but their owner.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "cli/process.h"

namespace atl::cli {

// Runs `work` in a child that is `identity` for good, with no new privileges and files private to
// it, and gives the text or the error that it ends with.
Result<std::string> run_as(const Identity& identity,
                           const std::function<Result<std::string>()>& work);

}  // namespace atl::cli
