// The programs of others that Atoll runs, or will run.
#pragma once

#include "cli/doctor/finding.h"

namespace atl::cli {

Findings probe_programs();

}  // namespace atl::cli
