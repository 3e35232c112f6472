#include "cli/shell_command.h"

#include <algorithm>

#include "cli/api.h"
#include "cli/attach.h"
#include "cli/readable.h"

namespace atl::cli {
namespace {

namespace json = boost::json;

// The better shell of those that an image may have.
constexpr const char* kFindShell = "command -v bash >/dev/null && exec bash -i; exec sh -i";
// A shell waits for a person; the sandbox's own ttl still ends it.
constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24);

// About a screen, for whoever comes back.
constexpr uint64_t kShownAgainBytes = 2048;

}  // namespace

Result<int> run_command(const CommandLine& line, const ShellCommand& shell) {
  if (line.format == Format::kJson)
    return Error(Code::kInvalid, "shell has no JSON to print\n  remedy: atoll exec --json");
  ATOLL_TRY(Api api, connect(line));
  AttachOptions options{.mode = shell.mode};
  if (!shell.attach.empty()) {
    ATOLL_TRY(json::object exec, api.show_exec(shell.id, shell.attach));
    uint64_t printed = number_field(exec, "stdout_bytes");
    options.since = std::to_string(printed - std::min(printed, kShownAgainBytes));
    return attach(api, {shell.id, shell.attach}, options);
  }
  ExecOptions exec = shell.exec;
  if (!exec.timeout) exec.timeout = kLongest;
  json::object request = exec_body(exec);
  request["cmd"] = {"/bin/sh", "-c", kFindShell};
  ATOLL_TRY(ExecName name, start_on_terminal(api, shell.id, std::move(request)));
  return attach(api, name, options);
}

}  // namespace atl::cli
