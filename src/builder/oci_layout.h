// An OCI image layout in a directory, or what `docker save` writes: finds the layers of the one
// image for this machine and verifies every blob against its digest.
#pragma once

#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace atl::builder {

// From the lowest up, open for reading and verified.
Result<std::vector<Fd>> open_layers(int directory);

}  // namespace atl::builder
