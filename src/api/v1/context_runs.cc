#include "api/v1/context_runs.h"

#include <charconv>

#include "api/json_reader.h"
#include "api/json_reply.h"
#include "api/query.h"
#include "api/v1/context_json.h"
#include "api/v1/contexts.h"
#include "api/v1/exec_event.h"
#include "api/v1/exec_output.h"
#include "http/message.h"
#include "sandbox/context_start.h"

namespace atl::api::v1 {

namespace json = boost::json;
using sandbox::ContextRun;
using sandbox::RunEvent;
using sandbox::RunOutput;
using sandbox::RunPosition;
using sandbox::RunReader;
using sandbox::Sandboxes;

namespace {

constexpr size_t kEventPieceBytes = 32 * 1024;  // up to six times as long when escaped

Error no_such_run() {
  return Error(Code::kNotFound, "there is no such run").with_reason("run_not_found");
}

struct RunCall {
  sandbox::RunRequest request;
  std::optional<bool> wait;
};

Result<RunCall> parse_run(std::string_view body) {
  ATOLL_TRY(json::object object, parse_object(body));
  ObjectReader reader(object);
  RunCall run;
  run.request.code = reader.text("code", sandbox::kMaxCodeBytes);
  if (run.request.code.find('\0') != std::string::npos)
    reader.refuse("code", "must not contain a zero byte");
  run.request.timeout_ms = reader.optional_small("timeout_ms", 1, sandbox::kMaxTimeoutMs)
                               .value_or(sandbox::kDefaultTimeoutMs);
  run.request.environment = parse_variables(reader);
  run.wait = reader.optional_boolean("wait");
  ATOLL_TRY_VOID(reader.finish());
  return run;
}

std::string position_id(const RunPosition& position) {
  return std::to_string(position.standard_output) + "-" + std::to_string(position.standard_error) +
         "-" + std::to_string(position.speech);
}

std::optional<RunPosition> parse_run_position(std::string_view text) {
  RunPosition position;
  const char* at = text.data();
  const char* last = at + text.size();
  for (uint64_t* number : {&position.standard_output, &position.standard_error, &position.speech}) {
    if (number != &position.standard_output && (at == last || *at++ != '-')) return std::nullopt;
    auto [end, error] = std::from_chars(at, last, *number);
    if (error != std::errc()) return std::nullopt;
    at = end;
  }
  return at == last ? std::optional(position) : std::nullopt;
}

http::Task<Result<void>> send_event(Call& call, const RunReader& reader, std::string name,
                                    std::string data) {
  http::ServerSentEvent event{position_id(reader.position()), std::move(name), std::move(data)};
  std::string text = http::format_event(event);
  co_return co_await call.exchange.write(text);
}

http::Task<Result<bool>> wait_changed(Call& call, ContextRun& run) {
  auto watch = call.exchange.watch_peer();
  if (watch.gone()) co_return false;
  co_return co_await run.wait_changed();
}

// False: nothing is to be sent before there is more.
http::Task<Result<bool>> send_output(Call& call, RunReader& reader, RunOutput& output,
                                     bool is_last) {
  size_t whole = is_last ? output.bytes.size() : whole_characters(output.bytes);
  reader.unread(output, output.bytes.size() - whole);
  if (whole == 0) co_return false;
  output.bytes.resize(whole);
  std::string name = output.stream == agent::Stream::kStdout ? "stdout" : "stderr";
  std::string data = output_data(output.bytes);
  ATOLL_CO_TRY_VOID(co_await send_event(call, reader, name, std::move(data)));
  co_return true;
}

http::Task<Result<void>> send_events(Call& call, std::shared_ptr<ContextRun> run,
                                     RunPosition from) {
  RunReader reader(run, from);
  while (true) {
    bool ended = run->ended();
    ATOLL_CO_TRY(RunEvent event, reader.next(kEventPieceBytes));
    bool waits = std::holds_alternative<sandbox::RunPending>(event);
    if (auto* output = std::get_if<RunOutput>(&event)) {
      // A character that is cut by the place of a record never becomes whole.
      bool is_last = ended || reader.is_before_record();
      ATOLL_CO_TRY(bool sent, co_await send_output(call, reader, *output, is_last));
      waits = !sent;
    } else if (auto* result = std::get_if<sandbox::RunResult>(&event)) {
      std::string data = json_text(result_json(*result));
      ATOLL_CO_TRY_VOID(co_await send_event(call, reader, "result", std::move(data)));
    } else if (auto* error = std::get_if<sandbox::RunError>(&event)) {
      std::string data = json_text(error_json(*error));
      ATOLL_CO_TRY_VOID(co_await send_event(call, reader, "error", std::move(data)));
    } else if (std::holds_alternative<sandbox::RunOver>(event)) {
      break;
    }
    if (!waits || run->ended()) continue;
    ATOLL_CO_TRY(bool changed, co_await wait_changed(call, *run));
    if (!changed) co_return Error(Code::kCancelled, "the client has gone");
  }
  std::string data = json_text(run_summary_json(run->row()));
  ATOLL_CO_TRY_VOID(co_await send_event(call, reader, "end", std::move(data)));
  co_return co_await call.exchange.finish();
}

http::Task<Reply> follow(Call& call, std::shared_ptr<ContextRun> run, RunPosition from,
                         FirstEvent first) {
  http::Headers headers{{"X-Request-Id", call.request_id},
                        {"Atoll-Run", std::to_string(run->row().number)}};
  Result<void> sent = co_await http::start_events(call.exchange, std::move(headers));
  if (sent && first == FirstEvent::kStart) {
    RunReader begin_run(run, from);
    std::string data = json_text(run_summary_json(run->row()));
    sent = co_await send_event(call, begin_run, "start", std::move(data));
  }
  bool is_head = call.exchange.request().method == http::Method::kHead;
  if (sent && is_head) sent = co_await call.exchange.finish();
  if (sent && !is_head) sent = co_await send_events(call, run, from);
  co_return std::optional<http::Response>();
}

http::Task<void> wait_ended(Call& call, ContextRun& run, SteadyTime deadline) {
  auto watch = call.exchange.watch_peer();
  while (!run.ended() && !watch.gone()) {
    bool changed = co_await run.wait_changed(deadline);
    if (!changed) co_return;
  }
}

http::Task<Result<std::shared_ptr<ContextRun>>> start_once(Call& call, NamedContext named,
                                                           RunCall& parsed) {
  if (call.made.run) {
    auto& contexts = named.sandbox->contexts();
    ATOLL_CO_TRY(auto known, co_await contexts.find_run(named.context, *call.made.run));
    if (!known) co_return no_such_run();
    co_return known;
  }
  parsed.request.idempotency_key = call.idempotency_key;
  auto started =
      co_await sandbox::start_run(named.sandbox, named.context, std::move(parsed.request));
  co_return started;
}

// Whoever starts a run and goes away leaves it running.
http::Task<Reply> start_run(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(NamedContext named, named_context(call, sandboxes));
  ATOLL_CO_TRY(RunCall parsed, parse_run(call.body));
  ATOLL_CO_TRY(std::shared_ptr<ContextRun> run, co_await start_once(call, named, parsed));
  bool wait = parsed.wait.value_or(false);
  if (wants_events(call.exchange.request()) || !parsed.wait) {
    RunPosition begin_run;
    co_return co_await follow(call, run, begin_run, FirstEvent::kStart);
  }
  if (!wait) co_return std::optional(json_reply(202, run_summary_json(run->row())));
  co_await wait_ended(call, *run, SteadyTime::max());
  if (!run->ended()) co_return std::optional<http::Response>();
  ATOLL_CO_TRY(json::object object, run_json(run));
  co_return std::optional(json_reply(200, object));
}

http::Task<Reply> show_run(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(NamedContext named, named_context(call, sandboxes));
  const http::Request& request = call.exchange.request();
  ATOLL_CO_TRY(auto wait_ms, number_parameter("wait_ms", request));
  if (wait_ms.value_or(0) > sandbox::kMaxTimeoutMs)
    co_return invalid_parameter("wait_ms", "must be at most a day");
  uint32_t number = 0;
  const std::string& text = call.parameters.at(2);
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) co_return no_such_run();
  auto& contexts = named.sandbox->contexts();
  ATOLL_CO_TRY(std::shared_ptr<ContextRun> run, co_await contexts.find_run(named.context, number));
  if (!run) co_return no_such_run();
  if (wants_events(request)) {
    ATOLL_CO_TRY(auto given, text_parameter("from", request));
    std::string from = given.value_or("0-0-0");
    if (auto last = request.headers.find("Last-Event-ID")) from = *last;
    auto position = parse_run_position(from);
    if (!position) co_return invalid_parameter("from", "must be the id of an event of this run");
    co_return co_await follow(call, run, *position, FirstEvent::kOutput);
  }
  auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(wait_ms.value_or(0));
  if (wait_ms) co_await wait_ended(call, *run, deadline);
  ATOLL_CO_TRY(json::object object, run_json(run));
  co_return std::optional(json_reply(200, object));
}

}  // namespace

void add_context_run_routes(Router& router, Sandboxes& sandboxes) {
  using http::Method;
  auto bind = [&sandboxes](auto action) {
    return [&sandboxes, action](Call& call) { return action(call, sandboxes); };
  };
  const std::string base = "/v1/sandboxes/{id}/contexts/{context}/runs";
  router.add({.method = Method::kPost,
              .pattern = base,
              .action = bind(start_run),
              .effect = Route::Effect::kCreates,
              .time = Route::Time::kLong});
  router.add({.method = Method::kGet,
              .pattern = base + "/{run}",
              .action = bind(show_run),
              .time = Route::Time::kLong});
}

}  // namespace atl::api::v1
