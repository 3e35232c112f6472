// One image without an Atoll that runs: for tests and for those who pack Atoll up.
#pragma once

#include <string>

#include "base/result.h"
#include "builder/build.h"

namespace atl::builder {

// Builds the pack on standard input, the log on standard error; leaves `out`/image.erofs and
// `out`/digest.
Result<void> build_once(const Workshop& workshop, const std::string& out);

}  // namespace atl::builder
