#include "api/v1/execs.h"

#include <boost/json/parse.hpp>

#include "api/base64.h"
#include "api/json_reader.h"
#include "api/json_reply.h"
#include "api/query.h"
#include "api/v1/exec_attach.h"
#include "api/v1/exec_input.h"
#include "api/v1/exec_json.h"
#include "api/v1/exec_output.h"
#include "api/v1/sandboxes.h"
#include "sandbox/environment.h"
#include "sandbox/trust.h"

namespace atl::api::v1 {

namespace json = boost::json;
using sandbox::Exec;
using sandbox::ExecRequest;
using sandbox::Sandbox;
using sandbox::Sandboxes;

namespace {

constexpr size_t kMaxVariables = 256;

std::vector<std::string> parse_command(ObjectReader& reader) {
  auto arguments = reader.optional_texts("cmd", agent::kMaxArguments, agent::kMaxTextBytes - 1);
  auto shell = reader.optional_text("shell", agent::kMaxTextBytes - 1);
  if (arguments && shell) reader.refuse("shell", "and cmd exclude each other");
  if (!arguments && !shell) reader.refuse("cmd", "or shell is required", "missing_field");
  if (shell) return {"/bin/sh", "-c", *shell};
  if (arguments && (arguments->empty() || arguments->front().empty()))
    reader.refuse("cmd", "must begin with the name of a program");
  return arguments.value_or(std::vector<std::string>());
}

// The agent looks it up inside; here only what no user can be called is refused.
std::string parse_user(ObjectReader& reader, const std::string& usual) {
  std::string user = reader.optional_text("user", agent::kMaxUserBytes).value_or(usual);
  auto is_printable = [](unsigned char c) { return c > ' ' && c < 0x7f && c != '/'; };
  if (user.empty() || !std::all_of(user.begin(), user.end(), is_printable))
    reader.refuse("user", "must be a name, a uid or uid:gid");
  return user;
}

void parse_input(ObjectReader& reader, ExecRequest& request) {
  auto text = reader.optional_text("stdin", agent::kMaxFirstInputBytes);
  auto base64 = reader.optional_text("stdin_base64", agent::kMaxFirstInputBytes / 3 * 4 + 4);
  if (text && base64) reader.refuse("stdin_base64", "and stdin exclude each other");
  std::optional<std::string> bytes = base64 ? from_base64(*base64) : text.value_or("");
  if (!bytes) reader.refuse("stdin_base64", "is not base 64 (RFC 4648, with padding)");
  request.input = bytes.value_or("");
  if (const json::object* terminal = reader.optional_object("pty")) {
    auto size = parse_terminal_size(*terminal, "pty.");
    if (!size) reader.adopt(std::move(size).error());
    if (size) request.terminal = *size;
  }
  bool open = reader.optional_boolean("stdin_open").value_or(request.terminal.has_value());
  request.input_mode = open ? agent::InputMode::kOpen : agent::InputMode::kEnds;
}

agent::OnOutputLimit parse_on_output_limit(ObjectReader& reader) {
  auto choice = reader.optional_text("on_output_limit", 16);
  if (!choice || *choice == "cut") return agent::OnOutputLimit::kCut;
  if (*choice != "kill") reader.refuse("on_output_limit", "must be \"cut\" or \"kill\"");
  return agent::OnOutputLimit::kKill;
}

// What is not given is the sandbox's; output and open files cannot exceed it.
void parse_limits(ObjectReader& outer, const sandbox::Limits& limits, ExecRequest& request) {
  request.output_limit_bytes = limits.output_bytes;
  request.cpu_time_ms = limits.cpu_time_ms;
  request.open_files = limits.wall.open_files;
  const json::object* object = outer.optional_object("limits");
  if (!object) return;
  ObjectReader reader(*object, "limits.");
  auto cpu_time = reader.optional_small("cpu_time_ms", 1, sandbox::kMaxCpuTimeMs);
  auto output = reader.optional_integer("output_bytes", 0, limits.output_bytes);
  auto open_files =
      reader.optional_small("open_files", isolate::kMinOpenFiles, limits.wall.open_files);
  request.cpu_time_ms = cpu_time.value_or(request.cpu_time_ms);
  request.output_limit_bytes = output.value_or(request.output_limit_bytes);
  request.open_files = open_files.value_or(request.open_files);
  auto finished = reader.finish();
  if (!finished) outer.adopt(std::move(finished).error());
}

Error no_such_exec() {
  return Error(Code::kNotFound, "there is no such exec").with_reason("exec_not_found");
}

// Waits until it has started or ended; false when the client has gone.
http::Task<bool> wait_started(Call& call, Exec& exec) {
  auto watch = call.exchange.watch_peer();
  while (!exec.started() && !exec.ended() && !watch.gone()) {
    bool changed = co_await exec.wait_changed();
    if (!changed) co_return false;
  }
  co_return !watch.gone();
}

http::Task<void> wait_ended(Call& call, Exec& exec, SteadyTime deadline) {
  auto watch = call.exchange.watch_peer();
  if (!watch.gone()) static_cast<void>(co_await exec.wait_ended(deadline));
}

// The exec that an earlier life of atolld started for this call and did not answer with, or a new
// one.
http::Task<Result<std::shared_ptr<Exec>>> start_once(Call& call, std::shared_ptr<Sandbox> sandbox,
                                                     ExecCall& parsed) {
  if (call.made.exec) {
    ATOLL_CO_TRY(std::shared_ptr<Exec> known, co_await sandbox->execs().open(*call.made.exec));
    if (!known) co_return no_such_exec();
    co_return known;
  }
  parsed.request.idempotency_key = call.idempotency_key;
  auto started = co_await sandbox->start_exec(std::move(parsed.request), parsed.description);
  co_return started;
}

// Whoever starts an exec and goes away leaves it running.
http::Task<Reply> start_exec(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, sandboxes));
  ATOLL_CO_TRY(ExecCall parsed, parse_exec(call.body, *sandbox));
  ATOLL_CO_TRY(std::shared_ptr<Exec> exec, co_await start_once(call, sandbox, parsed));
  if (wants_events(call.exchange.request())) {
    OutputPosition begin;
    co_return co_await follow_exec(call, exec, begin, FirstEvent::kStart);
  }
  if (parsed.wait) {
    co_await wait_ended(call, *exec, SteadyTime::max());
    if (!exec->ended()) co_return std::optional<http::Response>();
  } else {
    bool is_there = co_await wait_started(call, *exec);
    if (!is_there) co_return std::optional<http::Response>();
  }
  ATOLL_CO_TRY(json::object object, exec_json(*exec));
  co_return std::optional(json_reply(parsed.wait ? 200 : 202, object));
}

http::Task<Reply> show_exec(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(auto wait_ms, number_parameter("wait_ms", call.exchange.request()));
  if (wait_ms.value_or(0) > sandbox::kMaxTimeoutMs)
    co_return invalid_parameter("wait_ms", "must be at most a day");
  ATOLL_CO_TRY(std::shared_ptr<Exec> exec, co_await named_exec(call, sandboxes));
  auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(wait_ms.value_or(0));
  if (wait_ms) co_await wait_ended(call, *exec, deadline);
  ATOLL_CO_TRY(json::object object, exec_json(*exec));
  co_return std::optional(json_reply(200, object));
}

http::Task<Reply> list_execs(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, sandboxes));
  const http::Request& request = call.exchange.request();
  auto limit = page_limit(request.query);
  if (!limit) co_return invalid_parameter("limit", "must be a whole number from 1 to 1000");
  ATOLL_CO_TRY(auto cursor, text_parameter("cursor", request));
  std::optional<ExecId> after = cursor ? ExecId::parse(*cursor) : std::nullopt;
  if (cursor && !after) co_return invalid_parameter("cursor", "is not one that this API gave out");
  ATOLL_CO_TRY(auto rows, co_await sandbox->execs().list(after, *limit));
  json::array items;
  for (const store::ExecRow& row : rows) items.push_back(exec_summary_json(row));
  json::object object;
  object["execs"] = std::move(items);
  object["next_cursor"] = nullptr;
  if (rows.size() == *limit) object["next_cursor"] = rows.back().id.string();
  co_return std::optional(json_reply(200, object));
}

}  // namespace

sandbox::Variables sandbox_variables(const std::string& environment) {
  sandbox::Variables variables;
  json::error_code error;
  json::value value = json::parse(environment, error);
  if (error || !value.is_object()) return variables;
  for (const auto& entry : value.get_object())
    variables.emplace_back(entry.key(), entry.value().as_string());
  return variables;
}

Result<ExecCall> parse_exec(std::string_view body, const Sandbox& sandbox) {
  const store::SandboxRow& row = sandbox.row();
  ExecDefaults defaults{sandbox::environment_of(row), row.user, row.directory};
  return parse_exec(body, sandbox::limits_of(row), defaults);
}

Result<ExecCall> parse_exec(std::string_view body, const sandbox::Limits& limits,
                            const ExecDefaults& defaults) {
  ATOLL_TRY(json::object object, parse_object(body));
  ObjectReader reader(object);
  ExecCall exec;
  exec.request.arguments = parse_command(reader);
  exec.request.user = parse_user(reader, defaults.user);
  TextPairs variables = reader.text_pairs("env", kMaxVariables, agent::kMaxTextBytes / 2);
  for (const auto& [name, value] : variables)
    if (!sandbox::is_variable_name(name))
      reader.refuse("env", "has a name that no variable can have");
  exec.request.environment = sandbox::compose_environment(
      limits.wall.cpu_millis, {sandbox_variables(defaults.environment), variables});
  auto directory = reader.optional_text("cwd", agent::kMaxPathBytes);
  if (directory && !directory->starts_with('/')) reader.refuse("cwd", "must be an absolute path");
  exec.request.directory = directory.value_or(defaults.directory);
  exec.request.timeout_ms = reader.optional_small("timeout_ms", 1, sandbox::kMaxTimeoutMs)
                                .value_or(sandbox::kDefaultTimeoutMs);
  parse_limits(reader, limits, exec.request);
  exec.request.on_output_limit = parse_on_output_limit(reader);
  parse_input(reader, exec.request);
  exec.wait = reader.optional_boolean("wait").value_or(false);
  ATOLL_TRY_VOID(reader.finish());
  exec.description = describe(exec.request);
  return exec;
}

http::Task<Result<std::shared_ptr<Exec>>> named_exec(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, sandboxes));
  auto id = ExecId::parse(call.parameters.at(1));
  if (!id) co_return no_such_exec();
  ATOLL_CO_TRY(std::shared_ptr<Exec> exec, co_await sandbox->execs().open(*id));
  if (!exec) co_return no_such_exec();
  co_return exec;
}

void add_exec_routes(Router& router, Sandboxes& sandboxes) {
  sandboxes.services().describe = describe;
  using http::Method;
  auto bind = [&sandboxes](auto action) {
    return [&sandboxes, action](Call& call) { return action(call, sandboxes); };
  };
  const std::string base = "/v1/sandboxes/{id}/execs";
  router.add({.method = Method::kPost,
              .pattern = base,
              .action = bind(start_exec),
              .effect = Route::Effect::kCreates,
              .time = Route::Time::kLong});
  router.add({Method::kGet, base, bind(list_execs)});
  router.add({.method = Method::kGet,
              .pattern = base + "/{exec}",
              .action = bind(show_exec),
              .time = Route::Time::kLong});
  add_exec_output_route(router, sandboxes);
  add_exec_input_routes(router, sandboxes);
  add_exec_attach_route(router, sandboxes);
}

}  // namespace atl::api::v1
