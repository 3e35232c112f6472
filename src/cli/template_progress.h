// Following the build of a template: a bar on a terminal, a line for each step elsewhere.
#pragma once

#include <string>

#include <boost/json/object.hpp>

#include "base/result.h"
#include "cli/api.h"
#include "cli/commands.h"

namespace atl::cli {

// Waits for the end of the build; the log is shown with kVerbose, and its last lines when the build
// has failed. kInvalid then, with the server's reason.
Result<boost::json::object> follow_build(Api& api, const std::string& name, Verbosity verbosity);

// A call that names a template; if that is being built, it is followed and the call made again.
Result<boost::json::object> call_when_built(Api& api, const Api::Call& call);
Result<boost::json::object> create_when_built(Api& api, boost::json::object request);
// One that nobody else is given, so that it can be removed.
Result<boost::json::object> create_own_when_built(Api& api, const SandboxOptions& options);

// "[====>   ] 2/5 installing packages"
std::string step_line(unsigned step, unsigned steps, const std::string& title);

}  // namespace atl::cli
