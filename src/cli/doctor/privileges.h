// What this process may do on the host, and with that the server it would start.
#pragma once

#include <cstdint>
#include <string>

#include "cli/doctor/finding.h"

namespace atl::cli {

// The names of the capabilities that Atoll needs and `effective` lacks, e.g. "CAP_SYS_ADMIN".
std::string missing_capabilities(uint64_t effective);

Findings probe_privileges();

}  // namespace atl::cli
