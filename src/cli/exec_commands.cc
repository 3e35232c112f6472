#include "cli/exec_commands.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <array>

#include <boost/json/serialize.hpp>

#include "base/file.h"
#include "cli/api.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/readable.h"

namespace atl::cli {
namespace {

namespace json = boost::json;

// The kernel's limit of one argument (MAX_ARG_STRLEN) less its NUL: code travels as an argument.
constexpr size_t kMaxCodeBytes = 131'071;

struct Interpreter {
  std::string_view template_name;
  std::array<const char*, 2> command;
};
constexpr std::array kInterpreters = {Interpreter{"python", {"python3", "-c"}}};

Result<std::vector<std::string>> command_of(const std::string& template_name, std::string code) {
  for (const Interpreter& interpreter : kInterpreters)
    if (interpreter.template_name == template_name)
      return std::vector<std::string>{interpreter.command[0], interpreter.command[1],
                                      std::move(code)};
  return Error(Code::kInvalid, "run does not know which program runs the code of template " +
                                   template_name + ": use create and exec");
}

Result<std::string> read_code(const RunCommand& run) {
  if (run.code) return *run.code;
  if (run.file == "-") return read_all(STDIN_FILENO, kMaxCodeBytes);
  return read_file(run.file, kMaxCodeBytes);
}

std::optional<int> number_of(const json::object& exec, const char* name) {
  const json::value* value = exec.if_contains(name);
  if (value == nullptr || !value->is_int64()) return std::nullopt;
  int64_t number = value->as_int64();
  if (number < 0 || number > 255) return std::nullopt;
  return static_cast<int>(number);
}

std::string text_of(const json::object& exec, const char* name) {
  const json::value* value = exec.if_contains(name);
  if (value == nullptr) return "-";
  return value->is_string() ? value->as_string().c_str() : json::serialize(*value);
}

std::string shown(const json::object& exec, const char* name) {
  const json::value* value = exec.if_contains(name);
  return value == nullptr ? "-" : readable(*value);
}

Result<int> show_result(const json::object& exec, const ShowOutput& show, Format format) {
  std::string verdict = text_of(exec, "verdict");
  int exit_code = exit_code_of({.verdict = verdict,
                                .exit_code = number_of(exec, "exit_code"),
                                .signal_number = number_of(exec, "signal")});
  if (format == Format::kJson) {
    printf("%s\n", json::serialize(exec).c_str());
    return exit_code;
  }
  ATOLL_TRY(std::string out, output_bytes(exec, "stdout"));
  ATOLL_TRY(std::string err, output_bytes(exec, "stderr"));
  ATOLL_TRY_VOID(write_output(STDOUT_FILENO, out, show.mode));
  ATOLL_TRY_VOID(write_output(STDERR_FILENO, err, show.mode));
  if (exit_code == kExitPlatform && number_of(exec, "exit_code") != kExitPlatform)
    fprintf(stderr, "atoll: the program was not ended by itself: %s\n",
            escape_line(verdict).c_str());
  if (show.verbosity == Verbosity::kVerbose)
    fprintf(stderr, "verdict %s\nlimits_hit %s\nusage %s\ntimings %s\n",
            escape_line(verdict).c_str(), shown(exec, "limits_hit").c_str(),
            shown(exec, "usage").c_str(), shown(exec, "timings").c_str());
  return exit_code;
}

}  // namespace

Result<int> run_exec(const CommandLine& line, const ExecCommand& exec) {
  ATOLL_TRY(Server server, find_server(line.places, line.server));
  Api api(std::move(server));
  ATOLL_TRY(json::object result,
            api.run_exec({exec.id, exec.command, exec.timeout, exec.limits, exec.on_output_limit}));
  return show_result(result, exec.show, line.format);
}

Result<int> run_run(const CommandLine& line, const RunCommand& run) {
  ATOLL_TRY(std::string code, read_code(run));
  if (code.size() > kMaxCodeBytes)
    return Error(Code::kExhausted, "the code is over " + std::to_string(kMaxCodeBytes) + " bytes");
  ATOLL_TRY(std::vector<std::string> command,
            command_of(run.sandbox.template_name, std::move(code)));
  ATOLL_TRY(Server server, find_server(line.places, line.server));
  Api api(server);

  InterruptGuard guard;
  ATOLL_TRY(json::object sandbox, api.create_sandbox(run.sandbox));
  std::string id = text_of(sandbox, "id");
  // Its own connection: the signal comes while the other one waits for the program.
  guard.on_interrupt([server, id] {
    auto removed = Api(server).remove_sandbox(id);
    if (!removed)
      fprintf(stderr, "atoll: %s\n", escape_controls(removed.error().message()).c_str());
  });
  auto result = api.run_exec({id, std::move(command), run.timeout, {}, run.on_output_limit});
  auto removed = api.remove_sandbox(id);
  if (!result) return std::move(result).error();
  ATOLL_TRY(int exit_code, show_result(*result, run.show, line.format));
  if (run.show.verbosity == Verbosity::kVerbose)
    fprintf(stderr, "create %s\n", shown(sandbox, "timings").c_str());
  if (!removed) return std::move(removed).error().with_context("remove " + id);
  return exit_code;
}

}  // namespace atl::cli
