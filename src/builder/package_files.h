// The files of Debian packages, as they are in the packages: nothing they depend on comes along and
// nothing of them is run. Python among them gets bytecode, by this host's own interpreter.
#pragma once

#include <string>

#include "base/result.h"
#include "store/template_manifest.h"

namespace atl::builder {

// Writes them as a tar to `target`. Runs in a jail with the network.
Result<void> fetch_package_files(const store::DebianSource& source, const std::string& target);

}  // namespace atl::builder
