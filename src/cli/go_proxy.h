// Where this host's Go fetches modules from, for templates that are compiled from one.
#pragma once

#include <string>

namespace atl::cli {

// A list as GOPROXY has it: from the environment, or from what `go env -w` wrote for the user who
// starts Atoll; empty: neither says.
std::string find_go_proxy();

}  // namespace atl::cli
