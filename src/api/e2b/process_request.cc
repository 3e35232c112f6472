#include "api/e2b/process_request.h"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>

#include "api/e2b/path.h"
#include "api/v1/execs.h"
#include "sandbox/environment.h"
#include "sandbox/trust.h"

namespace atl::api::e2b {

namespace json = boost::json;
using sandbox::Exec;
using sandbox::ExecRequest;
using sandbox::Sandbox;

namespace {

constexpr size_t kMaxVariables = 256;
constexpr uint32_t kMaxPid = 1u << 22;

void parse_config(const json::object& config, const Sandbox& sandbox, ExecRequest& request,
                  ObjectReader& outer) {
  ObjectReader reader(config, "process.");
  sandbox::Limits limits = sandbox::limits_of(sandbox.row());
  request.arguments = {reader.text("cmd", agent::kMaxTextBytes - 1)};
  if (request.arguments.front().empty()) reader.refuse("cmd", "must name a program");
  auto rest = reader.optional_texts("args", agent::kMaxArguments - 1, agent::kMaxTextBytes - 1);
  for (std::string& argument : rest.value_or(std::vector<std::string>()))
    request.arguments.push_back(std::move(argument));
  TextPairs variables = reader.text_pairs("envs", kMaxVariables, agent::kMaxTextBytes / 2);
  for (const auto& [name, value] : variables)
    if (!sandbox::is_variable_name(name))
      reader.refuse("envs", "has a name that no variable can have");
  auto usual = v1::sandbox_variables(sandbox::environment_of(sandbox.row()));
  request.environment = sandbox::compose_environment(limits.wall.cpu_millis, {usual, variables});
  request.directory = sandbox.row().directory;
  auto directory = reader.optional_text("cwd", agent::kMaxPathBytes);
  if (directory && !directory->empty()) {
    auto resolved = resolve_path(*directory, request.user);
    if (resolved) request.directory = std::move(*resolved);
    if (!resolved) outer.adopt(std::move(resolved).error());
  }
  request.output_limit_bytes = limits.output_bytes;
  request.cpu_time_ms = limits.cpu_time_ms;
  request.open_files = limits.wall.open_files;
  auto settled = reader.settle();
  if (!settled) outer.adopt(std::move(settled).error());
}

json::value requested(std::string_view field, const Exec& exec) {
  json::error_code error;
  json::value request = json::parse(exec.row().request, error);
  if (error || !request.is_object()) return nullptr;
  const json::value* value = request.get_object().if_contains(field);
  return value ? *value : json::value();
}

}  // namespace

Result<std::optional<agent::TerminalSize>> parse_terminal(const json::object& message) {
  ObjectReader reader(message);
  const json::object* pty = reader.optional_object("pty");
  ATOLL_TRY_VOID(reader.settle());
  if (!pty) return std::optional<agent::TerminalSize>();
  ObjectReader outer(*pty, "pty.");
  const json::object* size = outer.optional_object("size");
  if (!size) outer.refuse("size", "is required", "missing_field");
  ATOLL_TRY_VOID(outer.settle());
  ObjectReader inner(*size, "pty.size.");
  auto columns = inner.optional_small("cols", 1, agent::kMaxTerminalSide);
  auto rows = inner.optional_small("rows", 1, agent::kMaxTerminalSide);
  ATOLL_TRY_VOID(inner.settle());
  return std::optional(agent::TerminalSize{static_cast<uint16_t>(columns.value_or(80)),
                                           static_cast<uint16_t>(rows.value_or(24))});
}

Result<ExecRequest> parse_start(const json::object& message, const Sandbox& sandbox,
                                std::string user) {
  ObjectReader reader(message);
  ExecRequest request;
  request.user = std::move(user);
  request.timeout_ms = sandbox::kMaxTimeoutMs;
  const json::object* config = reader.optional_object("process");
  if (config) parse_config(*config, sandbox, request, reader);
  if (!config) reader.refuse("process", "is required", "missing_field");
  bool open = reader.optional_boolean("stdin").value_or(true);
  ATOLL_TRY_VOID(reader.settle());
  ATOLL_TRY(request.terminal, parse_terminal(message));
  if (request.terminal) open = true;
  request.input_mode = open ? agent::InputMode::kOpen : agent::InputMode::kEnds;
  return request;
}

Error no_such_process(uint32_t pid) {
  return Error(Code::kNotFound, "process with pid " + std::to_string(pid) + " not found")
      .with_reason("exec_not_found");
}

Result<uint32_t> selected_pid(const json::object& message) {
  ObjectReader outer(message);
  const json::object* selector = outer.optional_object("process");
  ATOLL_TRY_VOID(outer.settle());
  if (!selector) return 0u;
  ObjectReader reader(*selector, "process.");
  uint32_t pid = reader.optional_small("pid", 0, kMaxPid).value_or(0);
  ATOLL_TRY_VOID(reader.settle());
  return pid;
}

http::Task<Result<std::vector<std::shared_ptr<Exec>>>> live_processes(
    std::shared_ptr<Sandbox> sandbox, sandbox::Ledger& ledger) {
  SandboxId id = sandbox->id();
  auto read = [id](store::Catalog& catalog) { return catalog.execs().all_running(id); };
  ATOLL_CO_TRY(auto rows, co_await ledger.run(read));
  std::vector<std::shared_ptr<Exec>> processes;
  for (const store::ExecRow& row : rows) {
    auto exec = sandbox->execs().find_live(row.id);
    bool runs = exec && exec->started() && !exec->ended();
    if (runs && exec->output().kind() == sandbox::ExecKind::kProgram)
      processes.push_back(std::move(exec));
  }
  co_return processes;
}

http::Task<Result<std::shared_ptr<Exec>>> selected_process(const json::object& message,
                                                           std::shared_ptr<Sandbox> sandbox,
                                                           sandbox::Ledger& ledger) {
  ATOLL_CO_TRY(uint32_t pid, selected_pid(message));
  ATOLL_CO_TRY(auto processes, co_await live_processes(sandbox, ledger));
  for (std::shared_ptr<Exec>& exec : processes)
    if (exec->row().pid == pid) co_return std::move(exec);
  co_return no_such_process(pid);
}

bool has_terminal(const Exec& exec) { return requested("pty", exec).is_object(); }

json::object process_json(const Exec& exec) {
  json::object config;
  json::array arguments;
  json::value command = requested("cmd", exec);
  if (command.is_array())
    for (const json::value& argument : command.get_array())
      config.contains("cmd") ? arguments.push_back(argument) : void(config["cmd"] = argument);
  config["args"] = std::move(arguments);
  json::value directory = requested("cwd", exec);
  if (directory.is_string()) config["cwd"] = directory;
  json::object object;
  object["config"] = std::move(config);
  object["pid"] = exec.row().pid;
  return object;
}

}  // namespace atl::api::e2b
