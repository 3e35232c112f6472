// The eight namespaces, each made once together with a user namespace, as a jail makes them.
#pragma once

#include "cli/doctor/finding.h"

namespace atl::cli {

Findings probe_namespaces();

}  // namespace atl::cli
