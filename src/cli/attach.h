// The user's terminal as the terminal of a program in a sandbox, over one WebSocket.
#pragma once

#include <string>

#include <boost/json/object.hpp>

#include "base/result.h"
#include "cli/api.h"
#include "cli/program_output.h"

namespace atl::cli {

enum class TerminalInput : unsigned char { kPassed, kNone };

struct AttachOptions {
  TerminalInput input = TerminalInput::kPassed;
  OutputMode mode = OutputMode::kSafe;
  std::string since = {};  // an offset of the output; empty: from the beginning
};

// Starts `request` with a terminal of the size of ours.
Result<ExecName> start_on_terminal(Api& api, const std::string& sandbox,
                                   boost::json::object request);

// Until the program ends or the user leaves it with Enter ~ . ; gives the exit code. The terminal
// is raw meanwhile and as it was before afterwards.
Result<int> attach(Api& api, const ExecName& name, const AttachOptions& options);

}  // namespace atl::cli
