#include "cli/run_command.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <boost/json/serialize.hpp>

#include "base/file.h"
#include "cli/api.h"
#include "cli/artifacts.h"
#include "cli/input_pump.h"
#include "cli/interrupt.h"
#include "cli/language.h"
#include "cli/program_output.h"
#include "cli/readable.h"
#include "cli/remote_path.h"
#include "cli/template_progress.h"
#include "cli/transfer.h"

namespace atl::cli {
namespace {

namespace json = boost::json;

constexpr size_t kMaxCodeBytes = 64 * 1024 * 1024;

Result<std::string> read_code(const RunCommand& run) {
  if (run.code) return *run.code;
  if (!run.file.empty() && run.file != "-") return read_file(run.file, kMaxCodeBytes);
  if (run.file.empty() && isatty(STDIN_FILENO) == 1)
    return Error(Code::kInvalid,
                 "run needs code: -c CODE, a file, or standard input\n  remedy: atoll help run");
  return read_all(STDIN_FILENO, kMaxCodeBytes);
}

struct Program {
  std::string code;
  std::string path;  // where the code goes inside; empty: it is an argument
  SandboxOptions sandbox;
  json::object exec;
  std::optional<json::object> compile;  // the exec before it
};

Result<Program> plan(const RunCommand& run) {
  Program program;
  ATOLL_TRY(program.code, read_code(run));
  bool has_file = !run.code && !run.file.empty() && run.file != "-";
  ATOLL_TRY(const Language* language, find_language({.template_name = run.sandbox.template_name,
                                                     .file = has_file ? run.file : "",
                                                     .code = program.code}));
  bool fits = !language->run_code.empty() && program.code.size() <= kMaxArgumentBytes;
  if (has_file) program.path = absolute_inside(base_name(run.file));
  if (!has_file && !fits) program.path = absolute_inside(std::string(language->file_name));
  program.sandbox = run.sandbox;
  if (program.sandbox.template_name.empty())
    program.sandbox.template_name = language->template_name;
  std::vector<std::string> command = command_of(*language, program.code, program.path);
  command.insert(command.end(), run.arguments.begin(), run.arguments.end());
  program.exec = exec_body(run.exec);
  ATOLL_TRY(program.exec["cmd"], command_words(command));
  std::vector<std::string> compile = compile_command_of(*language, program.path);
  if (compile.empty()) return program;
  program.compile.emplace();
  ATOLL_TRY((*program.compile)["cmd"], command_words(compile));
  for (const char* name : {"user", "env"})
    if (const json::value* value = program.exec.if_contains(name))
      (*program.compile)[name] = *value;
  return program;
}

Result<Fd> open_input(const RunCommand& run) {
  if (run.input.empty()) return Fd();
  if (run.input != "-") return open_file(run.input, O_RDONLY);
  Fd copy(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  if (!copy) return Error::system("use standard input");
  return copy;
}

// One program in one sandbox, which exists; the caller removes it.
class Run {
 public:
  Run(Api& api, const RunCommand& run, std::string id) : api_(api), run_(run), id_(std::move(id)) {}

  Result<json::object> in_sandbox(Program& program, const Fd& input, Format format) {
    for (const std::string& file : run_.files) ATOLL_TRY_VOID(copy_in(file));
    if (!program.path.empty()) ATOLL_TRY_VOID(put_bytes(api_, {id_, program.path}, program.code));
    std::optional<json::object> compiled;
    if (program.compile) {
      ATOLL_TRY(compiled, compile(std::move(*program.compile), format));
      if (text_field(*compiled, "phase") == "compile") return std::move(*compiled);
    }
    if (input) program.exec["stdin_open"] = true;
    ATOLL_TRY(json::object started, api_.start_exec(id_, std::move(program.exec)));
    ExecName name{id_, text_field(started, "id")};
    std::unique_ptr<InputPump> pump;
    if (input) {
      ATOLL_TRY(pump, InputPump::start(api_, name, input.get()));
    }
    auto ended = format == Format::kJson ? wait_for_exec(api_, name)
                                         : follow_exec(api_, name, run_.show.mode);
    // Its end also ends the pump, which may wait for a program that does not read.
    if (!ended) (void)signal_exec(api_, name, SIGKILL);
    if (!ended) return ended;
    if (compiled) (*ended)["compile"] = std::move(*compiled);
    if (!run_.output_directory.empty()) {
      ATOLL_TRY((*ended)["artifacts"], download_artifacts(api_, id_, run_.output_directory));
    }
    return ended;
  }

 private:
  // The compiler's exec; it is the end of the run, and says so in its phase, unless it succeeded.
  Result<json::object> compile(json::object exec, Format format) {
    ATOLL_TRY(json::object started, api_.start_exec(id_, std::move(exec)));
    ExecName name{id_, text_field(started, "id")};
    ATOLL_TRY(json::object ended, format == Format::kJson ? wait_for_exec(api_, name)
                                                          : follow_exec(api_, name, run_.show.mode,
                                                                        StdoutTarget::kStderr));
    std::string verdict = text_field(ended, "verdict");
    if (verdict == "ok") return ended;
    ended["phase"] = "compile";
    if (verdict != "nonzero" && verdict != "signal") return ended;
    // A driver such as g++ tells by its exit code that a process of it was killed.
    bool killed = json::serialize(ended["limits_hit"]).find("\"memory\"") != std::string::npos;
    ended["verdict"] = killed ? "oom" : "compile_error";
    return ended;
  }

  Result<void> copy_in(const std::string& file) {
    size_t colon = file.find(':');
    std::string local = file.substr(0, colon);
    std::string remote = colon == file.npos ? "" : file.substr(colon + 1);
    return copy_into(api_, local, {id_, absolute_inside(remote.empty() ? kHome : remote)},
                     {.depth = Depth::kRecursive});
  }

  Api& api_;
  const RunCommand& run_;
  std::string id_;
};

void remove_on_interrupt(InterruptGuard& guard, Api api, const std::string& id) {
  // Its own connection: the signal comes while the other one waits for the program.
  guard.on_interrupt([api = std::move(api), id](int) mutable {
    auto removed = api.remove_sandbox(id);
    if (!removed && removed.error().code() != Code::kNotFound)
      fprintf(stderr, "atoll: %s\n", escape_controls(removed.error().message()).c_str());
  });
}

// One call for everything, for output that is shown at the end anyway. The server removes the
// sandbox, also when we go away meanwhile. Nothing when it does not know the call.
Result<std::optional<json::object>> run_in_one_call(Api& api, const Program& program,
                                                    const RunCommand& run) {
  json::object body = create_body(program.sandbox);
  for (const auto& field : program.exec) body[field.key()] = field.value();
  Api::Call call{.method = http::Method::kPost, .target = "/v1/run", .body = std::move(body)};
  call.timeout += run.exec.timeout.value_or(std::chrono::minutes(1));
  auto answer = call_when_built(api, call);
  if (answer) return std::optional(std::move(*answer));
  if (answer.error().reason() == "not_found") return std::optional<json::object>();
  return std::move(answer).error();
}

}  // namespace

Result<int> run_command(const CommandLine& line, const RunCommand& run) {
  ATOLL_TRY(Program program, plan(run));
  ATOLL_TRY(Fd input, open_input(run));
  ATOLL_TRY(Api api, connect(line));
  bool is_simple = program.path.empty() && !input && run.files.empty();
  if (line.format == Format::kJson && is_simple && run.output_directory.empty()) {
    ATOLL_TRY(std::optional<json::object> done, run_in_one_call(api, program, run));
    if (done) {
      print_json(*done);
      return exit_code_of_exec(*done);
    }
  }
  InterruptGuard guard;
  ATOLL_TRY(json::object sandbox, create_own_when_built(api, program.sandbox));
  std::string id = text_field(sandbox, "id");
  remove_on_interrupt(guard, api, id);
  auto ended = Run(api, run, id).in_sandbox(program, input, line.format);
  guard.settle();
  auto removed = api.remove_sandbox(id);
  if (!ended) return std::move(ended).error();
  if (!removed && removed.error().code() != Code::kNotFound)
    return std::move(removed).error().with_context("remove " + id);
  if (line.format == Format::kJson) {
    (*ended)["sandbox_id"] = id;
    print_json(*ended);
    return exit_code_of_exec(*ended);
  }
  int exit_code = report_end(*ended, run.show.verbosity);
  if (run.show.verbosity == Verbosity::kVerbose)
    fprintf(stderr, "create %s\n", readable_field(sandbox, "timings").c_str());
  return exit_code;
}

}  // namespace atl::cli
