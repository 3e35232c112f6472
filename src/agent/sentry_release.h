// Which release of gVisor runs a sentry: what the image that it comes from says of it, as the
// builder writes it down of a Go module, or dpkg of a package. Old releases have holes that are
// known.
#pragma once

#include <chrono>
#include <string_view>

#include "linux/process_facts.h"

namespace atl::agent {

// Texts of the image; empty where it has none.
struct ReleaseNotes {
  std::string_view go_program;  // "<path> <module> <version> …", by builder/go_build.h
  std::string_view packages;    // as dpkg keeps them
};

// "runsc.version", and "runsc.age_days" where the version says of which day it is; "unknown" where
// neither names it.
linux::Facts sentry_release(const ReleaseNotes& notes, std::chrono::system_clock::time_point now);

// Of the root that this process has.
linux::Facts read_sentry_release();

}  // namespace atl::agent
