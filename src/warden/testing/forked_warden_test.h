// Launches by a process that is a warden itself, so that a test sees every step.
#pragma once

#include <functional>

#include "warden/launch.h"
#include "warden/testing/fixture_test.h"

namespace atl::warden::testing {

// Runs `body` in a process of its own that has made itself a warden, and removes all of it
// afterwards.
void as_warden(const Directories& directories, const std::function<void(Host&)>& body);

// Waits until the caller has no child.
void reap_all();

// As the service does it: in a forked helper, here with a fault, or on a kernel without a call.
LaunchOutcome launch(const Host& host, const Request& request, Fault fault, int without_call = -1);

}  // namespace atl::warden::testing
