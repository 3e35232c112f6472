// What a program in a sandbox prints and how it ended, as this program shows it.
#pragma once

#include <string>

#include <boost/json/object.hpp>

#include "base/result.h"
#include "cli/api.h"
#include "cli/commands.h"

namespace atl::cli {

struct ExecName {
  std::string sandbox;
  std::string exec;
};

// Where the standard output of a program goes: what a compiler prints is not the program's.
enum class StdoutTarget : unsigned char { kStdout, kStderr };

// Writes both streams as they come until the program has ended, over lost connections; gives the
// exec as it ended.
Result<boost::json::object> follow_exec(Api& api, const ExecName& name, OutputMode mode,
                                        StdoutTarget target = StdoutTarget::kStdout);
// Waits for the end and shows nothing.
Result<boost::json::object> wait_for_exec(Api& api, const ExecName& name);
// What one stream holds until now, to a descriptor.
Result<void> write_stream(Api& api, const ExecName& name, const std::string& stream,
                          OutputWriter& output);

Result<void> signal_exec(Api& api, const ExecName& name, int number);

int exit_code_of_exec(const boost::json::object& exec);
// Says on standard error what the program itself could not say: which limit ended it, what was
// cut. Empty when there is nothing to say.
std::string explain_end(const boost::json::object& exec);
// Both, and usage and timings if asked; gives the exit code.
int report_end(const boost::json::object& exec, Verbosity verbosity);

}  // namespace atl::cli
