// Which release of gVisor runs a sentry: what the image that it comes from says of its package. Old
// releases have holes that are known.
#pragma once

#include <chrono>
#include <string_view>

#include "linux/process_facts.h"

namespace atl::agent {

// `status` is a text as dpkg keeps it. "runsc.version", and "runsc.age_days" where the version says
// of which day it is; "unknown" where there is no such package.
linux::Facts sentry_release(std::string_view status, std::chrono::system_clock::time_point now);

// Of the root that this process has.
linux::Facts read_sentry_release();

}  // namespace atl::agent
