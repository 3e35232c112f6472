#include "api/v1/execs.h"

#include <charconv>

#include <boost/json/parse.hpp>

#include "api/json_reader.h"
#include "api/json_reply.h"
#include "api/v1/exec_json.h"
#include "api/v1/sandboxes.h"
#include "api/v1/signal_names.h"
#include "base/clock.h"
#include "sandbox/environment.h"

namespace atl::api::v1 {

namespace json = boost::json;
using sandbox::Exec;
using sandbox::ExecRequest;
using sandbox::Sandbox;
using sandbox::Sandboxes;

namespace {

constexpr size_t kMaxVariables = 256;
constexpr size_t kOutputPieceBytes = 64 * 1024;
// How much longer than the program's own time limit a waiting call waits for its verdict.
constexpr std::chrono::seconds kWaitGrace{30};

struct ExecCall {
  ExecRequest request;
  std::string description;
  bool wait = false;
};

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

agent::User parse_user(ObjectReader& reader) {
  auto user = reader.optional_text("user", 32);
  if (!user || *user == "user") return agent::User::kUser;
  if (*user != "root") reader.refuse("user", "must be \"user\" or \"root\"");
  return agent::User::kRoot;
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

sandbox::Variables sandbox_variables(const Sandbox& sandbox) {
  sandbox::Variables variables;
  json::error_code error;
  json::value value = json::parse(sandbox.row().environment, error);
  if (error || !value.is_object()) return variables;
  for (const auto& entry : value.get_object())
    variables.emplace_back(entry.key(), entry.value().as_string());
  return variables;
}

Result<ExecCall> parse_exec(const Call& call, const Sandbox& sandbox) {
  ATOLL_TRY(json::object object, parse_object(call.body));
  ObjectReader reader(object);
  ExecCall exec;
  exec.request.arguments = parse_command(reader);
  exec.request.user = parse_user(reader);
  TextPairs variables = reader.text_pairs("env", kMaxVariables, agent::kMaxTextBytes / 2);
  for (const auto& [name, value] : variables)
    if (!sandbox::is_variable_name(name))
      reader.refuse("env", "has a name that no variable can have");
  exec.request.environment = sandbox::compose_environment(
      exec.request.user, sandbox.limits().wall.cpu_millis, {sandbox_variables(sandbox), variables});
  auto directory = reader.optional_text("cwd", agent::kMaxPathBytes);
  if (directory && !directory->starts_with('/')) reader.refuse("cwd", "must be an absolute path");
  exec.request.directory = directory.value_or(sandbox::home_of(exec.request.user));
  exec.request.timeout_ms = reader.optional_small("timeout_ms", 1, sandbox::kMaxTimeoutMs)
                                .value_or(sandbox::kDefaultTimeoutMs);
  parse_limits(reader, sandbox.limits(), exec.request);
  exec.request.on_output_limit = parse_on_output_limit(reader);
  exec.wait = reader.optional_boolean("wait").value_or(false);
  ATOLL_TRY_VOID(reader.finish());
  exec.description = describe(exec.request);
  return exec;
}

Error no_such_exec() {
  return Error(Code::kNotFound, "there is no such exec").with_reason("exec_not_found");
}

// The exec that an earlier life of atolld started for this call and did not answer with.
http::Task<Reply> answer_about(ExecId id, std::shared_ptr<Sandbox> sandbox,
                               const ExecCall& parsed) {
  auto exec = sandbox->execs().find_live(id);
  auto deadline = std::chrono::steady_clock::now() +
                  std::chrono::milliseconds(parsed.request.timeout_ms) + kWaitGrace;
  bool ended = !exec;
  if (exec && parsed.wait) ended = co_await exec->wait_ended(deadline);
  ATOLL_CO_TRY(std::optional<store::ExecRow> row, co_await sandbox->execs().find(id));
  if (!row) co_return no_such_exec();
  ATOLL_CO_TRY(json::object object, exec_json(*row, *sandbox));
  co_return std::optional(json_reply(parsed.wait && ended ? 200 : 202, object));
}

http::Task<Reply> start(Call& call, Sandboxes& sandboxes) {
  auto received = std::chrono::steady_clock::now();
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, sandboxes));
  ATOLL_CO_TRY(ExecCall parsed, parse_exec(call, *sandbox));
  if (call.made.exec) co_return co_await answer_about(*call.made.exec, sandbox, parsed);
  parsed.request.idempotency_key = call.idempotency_key;
  auto deadline = received + std::chrono::milliseconds(parsed.request.timeout_ms) + kWaitGrace;
  ATOLL_CO_TRY(std::shared_ptr<Exec> exec,
               co_await sandbox->start_exec(std::move(parsed.request), parsed.description));
  if (!parsed.wait) {
    co_await exec->wait_started();
    ATOLL_CO_TRY(json::object object, exec_json(exec->row(), *sandbox));
    co_return std::optional(json_reply(202, object));
  }
  bool ended = co_await exec->wait_ended(deadline);
  ATOLL_CO_TRY(json::object object, exec_json(exec->row(), *sandbox));
  co_return std::optional(json_reply(ended ? 200 : 202, object));
}

http::Task<Result<store::ExecRow>> named_exec(Call& call, std::shared_ptr<Sandbox> sandbox) {
  auto id = ExecId::parse(call.parameters.at(1));
  if (!id) co_return no_such_exec();
  ATOLL_CO_TRY(std::optional<store::ExecRow> row, co_await sandbox->execs().find(*id));
  if (!row) co_return no_such_exec();
  co_return *row;
}

http::Task<Reply> show(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, sandboxes));
  ATOLL_CO_TRY(store::ExecRow row, co_await named_exec(call, sandbox));
  ATOLL_CO_TRY(json::object object, exec_json(row, *sandbox));
  co_return std::optional(json_reply(200, object));
}

http::Task<Reply> list(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, sandboxes));
  const std::string& query = call.exchange.request().query;
  auto limit = page_limit(query);
  auto cursor = http::query_parameter(query, "cursor");
  std::optional<ExecId> after = cursor ? ExecId::parse(*cursor) : std::nullopt;
  if (!limit || (cursor && !after))
    co_return Error(Code::kInvalid, "limit or cursor is not valid")
        .with_reason("invalid_field")
        .with_field(limit ? "cursor" : "limit");
  ATOLL_CO_TRY(auto rows, co_await sandbox->execs().list(after, *limit));
  json::array items;
  for (const store::ExecRow& row : rows) items.push_back(exec_summary_json(row));
  json::object object;
  object["execs"] = std::move(items);
  object["next_cursor"] = nullptr;
  if (rows.size() == *limit) object["next_cursor"] = rows.back().id.string();
  co_return std::optional(json_reply(200, object));
}

http::Task<Reply> signal(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, sandboxes));
  ATOLL_CO_TRY(store::ExecRow row, co_await named_exec(call, sandbox));
  ATOLL_CO_TRY(json::object object, parse_object(call.body));
  ObjectReader reader(object);
  auto number = signal_number(reader.text("signal", 16));
  if (!number) reader.refuse("signal", "must be a name such as \"TERM\" or \"KILL\"");
  ATOLL_CO_TRY_VOID(reader.finish());
  ATOLL_CO_TRY_VOID(sandbox->signal_exec(row.id, *number));
  http::Response response;
  response.status = 204;
  co_return std::optional(std::move(response));
}

struct OutputRange {
  agent::Stream stream;
  uint64_t offset;
};

Result<OutputRange> parse_output_range(const std::string& query) {
  auto invalid = [](std::string_view field, std::string message) {
    return Error(Code::kInvalid, std::move(message)).with_reason("invalid_field").with_field(field);
  };
  std::string name = http::query_parameter(query, "stream").value_or("stdout");
  if (name != "stdout" && name != "stderr")
    return invalid("stream", "stream must be stdout or stderr");
  std::string text = http::query_parameter(query, "offset").value_or("0");
  uint64_t offset = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), offset);
  if (error != std::errc() || end != text.data() + text.size())
    return invalid("offset", "offset must be a whole number");
  return OutputRange{name == "stdout" ? agent::Stream::kStdout : agent::Stream::kStderr, offset};
}

// What is on disk from the offset on, as bytes.
http::Task<Reply> output(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, sandboxes));
  ATOLL_CO_TRY(store::ExecRow row, co_await named_exec(call, sandbox));
  ATOLL_CO_TRY(OutputRange range, parse_output_range(call.exchange.request().query));
  ATOLL_CO_TRY(std::string piece,
               sandbox->execs().read_output(row.id, range.stream, range.offset, kOutputPieceBytes));
  http::Headers headers{{"Content-Type", "application/octet-stream"},
                        {"X-Request-Id", call.request_id}};
  Result<void> sent = co_await call.exchange.start_stream(200, std::move(headers));
  while (sent && !piece.empty()) {
    range.offset += piece.size();
    sent = co_await call.exchange.write(piece);
    auto next = sandbox->execs().read_output(row.id, range.stream, range.offset, kOutputPieceBytes);
    if (!next) co_return std::optional<http::Response>();  // cut short: the chunked body has no end
    piece = std::move(*next);
  }
  if (sent) sent = co_await call.exchange.finish();
  co_return std::optional<http::Response>();
}

}  // namespace

void add_exec_routes(Router& router, Sandboxes& sandboxes) {
  using http::Method;
  auto bind = [&sandboxes](auto action) {
    return [&sandboxes, action](Call& call) { return action(call, sandboxes); };
  };
  const std::string base = "/v1/sandboxes/{id}/execs";
  router.add({.method = Method::kPost,
              .pattern = base,
              .action = bind(start),
              .effect = Route::Effect::kCreates});
  router.add({Method::kGet, base, bind(list)});
  router.add({Method::kGet, base + "/{exec}", bind(show)});
  router.add({Method::kGet, base + "/{exec}/output", bind(output)});
  router.add({Method::kPost, base + "/{exec}/signal", bind(signal)});
}

}  // namespace atl::api::v1
