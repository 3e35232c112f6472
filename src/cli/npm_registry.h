// Where this host's npm fetches packages from, for templates that have some.
#pragma once

#include <string>

namespace atl::cli {

// From the environment, or the npmrc of the user who starts Atoll; empty: neither says.
std::string find_npm_registry();

}  // namespace atl::cli
