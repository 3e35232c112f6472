// A program that is run for its output, without capabilities, environment or any descriptor but its
// standard ones.
#pragma once

#include <string>

#include "base/result.h"

namespace atl::linux {

// `arguments` ends with a null; `input` is its standard input. An error unless it ends well and
// prints at most `most_bytes`.
Result<std::string> run_without_rights(const std::string& program, const char* const* arguments,
                                       int input, size_t most_bytes);

}  // namespace atl::linux
