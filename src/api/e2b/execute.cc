#include "api/e2b/execute.h"

#include "api/e2b/default_context.h"
#include "api/e2b/result_json.h"
#include "api/json_reader.h"
#include "api/v1/exec_event.h"
#include "base/utf8.h"
#include "sandbox/environment.h"
#include "sandbox/run_reader.h"

namespace atl::api::e2b {

namespace json = boost::json;
using sandbox::Context;
using sandbox::ContextRun;
using sandbox::RunEvent;
using sandbox::RunOutput;
using sandbox::RunReader;
using sandbox::Sandbox;

namespace {

constexpr size_t kPieceBytes = 32 * 1024;
constexpr std::chrono::seconds kKeepalive{5};
constexpr size_t kMaxVariables = 256;

struct Execution {
  sandbox::RunRequest request;
  std::string context, language;  // at most one of them is not empty
};

Result<Execution> parse_execute(std::string_view body) {
  ATOLL_TRY(json::object object, parse_object(body));
  ObjectReader reader(object);
  Execution execution;
  execution.request.code = reader.text("code", sandbox::kMaxCodeBytes);
  if (execution.request.code.find('\0') != std::string::npos)
    reader.refuse("code", "must not contain a zero byte");
  execution.context = reader.optional_text("context_id", 64).value_or("");
  execution.language = reader.optional_text("language", 32).value_or("");
  if (!execution.context.empty() && !execution.language.empty())
    reader.refuse("language", "and context_id exclude each other");
  for (const auto& [name, value] : reader.text_pairs("env_vars", kMaxVariables, 64 * 1024)) {
    if (!sandbox::is_variable_name(name))
      reader.refuse("env_vars", "has a name that no variable can have");
    execution.request.environment.push_back(name + "=" + value);
  }
  ATOLL_TRY_VOID(reader.settle());
  // The client has its own clock and interrupts the run by going away.
  execution.request.timeout_ms = sandbox::kMaxTimeoutMs;
  return execution;
}

http::Task<Result<std::shared_ptr<Context>>> context_of(std::shared_ptr<Sandbox> sandbox,
                                                        const Execution& execution) {
  if (!execution.context.empty()) co_return named_context(*sandbox, execution.context);
  auto language = language_named(execution.language.empty() ? "python" : execution.language);
  if (!language)
    co_return Error(Code::kInvalid, "language must be python, javascript, typescript or bash")
        .with_reason("invalid_field");
  co_return co_await default_context(sandbox, *language);
}

http::Task<Result<void>> send_line(Call& call, const json::object& object) {
  std::string line = ascii_line(object);
  co_return co_await call.exchange.write(line);
}

// Bytes that are no text are shown as such.
std::string text_of(const std::string& bytes) {
  if (is_utf8(bytes)) return bytes;
  std::string text;
  for (size_t at = 0; at < bytes.size();) {
    size_t length = utf8_sequence_length(std::string_view(bytes).substr(at));
    text += length == 0 ? "\xef\xbf\xbd" : bytes.substr(at, length);
    at += std::max<size_t>(1, length);
  }
  return text;
}

// False: nothing is to be sent before there is more.
http::Task<Result<bool>> send_output(Call& call, RunReader& reader, RunOutput& output,
                                     bool is_last) {
  size_t whole = is_last ? output.bytes.size() : v1::whole_characters(output.bytes);
  reader.unread(output, output.bytes.size() - whole);
  if (whole == 0) co_return false;
  output.bytes.resize(whole);
  json::object line;
  line["type"] = output.stream == agent::Stream::kStdout ? "stdout" : "stderr";
  line["text"] = text_of(output.bytes);
  line["timestamp"] = to_rfc3339(SystemClock().wall_now());
  ATOLL_CO_TRY_VOID(co_await send_line(call, line));
  co_return true;
}

json::object error_line(std::string_view name, std::string_view value, std::string_view traceback) {
  json::object line;
  line["type"] = "error";
  line["name"] = name;
  line["value"] = value;
  line["traceback"] = traceback;
  return line;
}

// Waits for news of the run. False: the client has gone. A line now and then keeps the connection.
http::Task<Result<bool>> wait_changed(Call& call, ContextRun& run) {
  SteadyTime until = std::chrono::steady_clock::now() + kKeepalive;
  bool gone = false, changed = false;
  {
    auto watch = call.exchange.watch_peer();
    if (!watch.gone()) changed = co_await run.wait_changed(until);
    gone = watch.gone();
  }
  if (gone) co_return false;
  if (changed) co_return true;
  if (std::chrono::steady_clock::now() < until) co_return false;  // the server stops
  json::object keepalive;
  keepalive["type"] = "keepalive";
  ATOLL_CO_TRY_VOID(co_await send_line(call, keepalive));
  co_return true;
}

// What a run that did not end by itself is said to have failed with.
http::Task<Result<void>> send_verdict(Call& call, const store::RunRow& row, bool failed) {
  if (row.verdict != "ok" && !failed) {
    std::string value = "the run ended: " + row.verdict;
    if (row.state_lost) value += "; the context was restarted and its state is lost";
    json::object line = error_line("UnexpectedEndOfExecution", value, "");
    ATOLL_CO_TRY_VOID(co_await send_line(call, line));
  }
  json::object end;
  end["type"] = "end_of_execution";
  std::string last = ascii_line(end);
  co_return co_await call.exchange.finish(last);
}

http::Task<Result<void>> send_events(Call& call, std::shared_ptr<ContextRun> run) {
  RunReader reader(run, {});
  bool failed = false;
  while (true) {
    bool ended = run->ended();
    ATOLL_CO_TRY(RunEvent event, reader.next(kPieceBytes));
    bool waits = std::holds_alternative<sandbox::RunPending>(event);
    if (auto* output = std::get_if<RunOutput>(&event)) {
      bool is_last = ended || reader.is_before_record();
      ATOLL_CO_TRY(bool sent, co_await send_output(call, reader, *output, is_last));
      waits = !sent;
    } else if (auto* result = std::get_if<sandbox::RunResult>(&event)) {
      json::object line = result_line(*result);
      ATOLL_CO_TRY_VOID(co_await send_line(call, line));
    } else if (auto* error = std::get_if<sandbox::RunError>(&event)) {
      json::object line = error_line(error->name, error->value, error->traceback);
      if (!std::exchange(failed, true)) ATOLL_CO_TRY_VOID(co_await send_line(call, line));
    } else if (std::holds_alternative<sandbox::RunOver>(event)) {
      break;
    }
    if (!waits || run->ended()) continue;
    ATOLL_CO_TRY(bool is_there, co_await wait_changed(call, *run));
    if (!is_there) co_return Error(Code::kCancelled, "the client has gone");
  }
  // Cut off, the client asks whether the sandbox is there.
  if (run->row().verdict == sandbox::verdict_name(sandbox::Verdict::kSandboxGone))
    co_return Error(Code::kCancelled, "the sandbox has gone");
  co_return co_await send_verdict(call, run->row(), failed);
}

http::Task<Result<void>> answer(Call& call, std::shared_ptr<ContextRun> run) {
  http::Headers headers{{"Content-Type", "application/x-ndjson"},
                        {"Cache-Control", "no-store"},
                        {"X-Request-Id", call.request_id}};
  json::object count;
  count["type"] = "number_of_executions";
  count["execution_count"] = run->row().number;
  std::string first = ascii_line(count);
  ATOLL_CO_TRY_VOID(co_await call.exchange.start_stream(200, std::move(headers), "", first));
  co_return co_await send_events(call, run);
}

}  // namespace

Result<std::shared_ptr<Context>> named_context(Sandbox& sandbox, std::string_view id) {
  auto parsed = ContextId::parse(id);
  auto context = parsed ? sandbox.contexts().find(*parsed) : nullptr;
  if (!context)
    return Error(Code::kNotFound, "Context " + std::string(id) + " not found")
        .with_reason("context_not_found");
  return context;
}

http::Task<Reply> execute(Call& call, Plane plane) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, running_sandbox(call, plane));
  ATOLL_CO_TRY(Execution execution, parse_execute(call.body));
  ATOLL_CO_TRY(std::shared_ptr<Context> context, co_await context_of(sandbox, execution));
  ATOLL_CO_TRY(std::shared_ptr<ContextRun> run,
               co_await sandbox::start_run(sandbox, context, std::move(execution.request)));
  auto answered = co_await answer(call, run);
  // So that the next run does not wait for one that nobody listens to.
  bool runs = run->row().state == "running";
  if (!answered && runs) context->interrupt();
  co_return std::optional<http::Response>();
}

}  // namespace atl::api::e2b
