#include "cli/exec_commands.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/api.h"
#include "cli/attach.h"
#include "cli/input_pump.h"
#include "cli/interrupt.h"
#include "cli/program_output.h"
#include "cli/readable.h"

namespace atl::cli {
namespace {

namespace json = boost::json;

Result<json::object> exec_request(const ExecCommand& exec) {
  json::object body = exec_body(exec.exec);
  ATOLL_TRY(body["cmd"], command_words(exec.command));
  if (exec.input == ExecCommand::Input::kStandardInput) body["stdin_open"] = true;
  return body;
}

// Passes the signal that ends us on to the program.
void forward_interrupt(InterruptGuard& guard, Api api, ExecName name) {
  guard.on_interrupt([api = std::move(api), name = std::move(name)](int number) mutable {
    auto sent = signal_exec(api, name, number);
    if (!sent) fprintf(stderr, "atoll: %s\n", escape_controls(sent.error().message()).c_str());
  });
}

Result<int> run_on_terminal(Api& api, const ExecCommand& exec) {
  ATOLL_TRY(json::object body, exec_request(exec));
  TerminalInput input = exec.input == ExecCommand::Input::kStandardInput ? TerminalInput::kPassed
                                                                         : TerminalInput::kNone;
  ATOLL_TRY(ExecName name, start_on_terminal(api, exec.id, std::move(body)));
  return attach(api, name, {.input = input, .mode = exec.show.mode});
}

}  // namespace

Result<int> run_command(const CommandLine& line, const ExecCommand& exec) {
  ATOLL_TRY(Api api, connect(line));
  if (exec.mode == ExecCommand::Mode::kTerminal && line.format == Format::kText)
    return run_on_terminal(api, exec);
  InterruptGuard guard;
  ATOLL_TRY(json::object body, exec_request(exec));
  ATOLL_TRY(json::object started, api.start_exec(exec.id, std::move(body)));
  ExecName name{exec.id, text_field(started, "id")};
  if (exec.mode == ExecCommand::Mode::kDetached) {
    if (line.format == Format::kJson)
      print_json(started);
    else
      printf("%s\n", readable_field(started, "id").c_str());
    return 0;
  }
  forward_interrupt(guard, api, name);
  std::unique_ptr<InputPump> pump;
  if (exec.input == ExecCommand::Input::kStandardInput) {
    ATOLL_TRY(pump, InputPump::start(api, name, STDIN_FILENO));
  }
  if (line.format == Format::kJson) {
    ATOLL_TRY(json::object ended, wait_for_exec(api, name));
    print_json(ended);
    return exit_code_of_exec(ended);
  }
  auto ended = follow_exec(api, name, exec.show.mode);
  guard.settle();
  if (ended) return report_end(*ended, exec.show.verbosity);
  // Nobody reads it: as in a pipe. Without its end the pump would wait for it.
  if (ended.error().system_errno() == EPIPE) (void)signal_exec(api, name, SIGPIPE);
  return std::move(ended).error();
}

Result<int> run_command(const CommandLine& line, const LogsCommand& logs) {
  ATOLL_TRY(Api api, connect(line));
  ExecName name{logs.id, logs.exec};
  if (line.format == Format::kJson) {
    bool waits = logs.until == LogsCommand::Until::kEnd;
    ATOLL_TRY(json::object exec,
              waits ? wait_for_exec(api, name) : api.show_exec(logs.id, logs.exec));
    print_json(exec);
    return 0;
  }
  if (logs.until == LogsCommand::Until::kEnd) {
    ATOLL_TRY_VOID(follow_exec(api, name, logs.mode));
    return 0;
  }
  OutputWriter out(STDOUT_FILENO, logs.mode);
  ATOLL_TRY_VOID(write_stream(api, name, "stdout", out));
  OutputWriter err(STDERR_FILENO, logs.mode);
  ATOLL_TRY_VOID(write_stream(api, name, "stderr", err));
  return 0;
}

}  // namespace atl::cli
