// The templates that come with Atoll, as folders: copied into the state directory when Atoll goes
// up, because atolld may not be able to read where they are installed.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/places.h"

namespace atl::cli {

// `binaries` is where the programs are; the templates are in ../share/atoll/templates. Without
// them nothing is built in.
Result<void> install_built_in(const std::string& binaries, const Places& places);

}  // namespace atl::cli
