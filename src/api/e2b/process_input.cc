#include "api/e2b/process_input.h"

#include "api/base64.h"
#include "api/e2b/envelope.h"
#include "api/e2b/process_request.h"
#include "api/e2b/rpc.h"
#include "api/json_reader.h"
#include "api/json_reply.h"

namespace atl::api::e2b {

namespace json = boost::json;
using sandbox::Exec;
using sandbox::ExecControl;
using sandbox::Sandbox;

namespace {

constexpr size_t kStepBytes = 32 * 1024;

std::optional<http::Response> empty_message() { return json_reply(200, json::object()); }

Error stdin_closed() {
  return Error(Code::kConflict, "stdin not enabled or closed").with_reason("stdin_closed");
}

Result<std::string> parse_input(const json::object& message, const Exec& exec) {
  ObjectReader outer(message);
  const json::object* input = outer.optional_object("input");
  ATOLL_TRY_VOID(outer.settle());
  if (!input) return std::string();
  ObjectReader reader(*input, "input.");
  bool to_terminal = has_terminal(exec);
  auto text = reader.optional_text(to_terminal ? "pty" : "stdin", kMaxBodyBytes);
  if (!text && reader.has(to_terminal ? "stdin" : "pty"))
    reader.refuse("pty", "is for processes with a terminal, stdin for those without");
  auto bytes = from_base64(text.value_or(""));
  if (!bytes) reader.refuse("stdin", "is not base 64");
  ATOLL_TRY_VOID(reader.settle());
  return *bytes;
}

http::Task<Result<void>> write_input(Call& call, ProcessTarget& target, std::string bytes) {
  ExecControl& control = target.sandbox->execs().control();
  auto watch = call.exchange.watch_peer();
  if (watch.gone()) co_return Error(Code::kCancelled, "the client has gone");
  ATOLL_CO_TRY(std::unique_ptr<ExecControl::Turn> turn, co_await control.take_turn(target.exec));
  if (target.exec->ended() || target.exec->input().closed) co_return stdin_closed();
  co_return co_await control.write(*turn, bytes);
}

http::Task<Result<void>> end_input(Call& call, ProcessTarget& target) {
  ExecControl& control = target.sandbox->execs().control();
  auto watch = call.exchange.watch_peer();
  if (watch.gone()) co_return Error(Code::kCancelled, "the client has gone");
  ATOLL_CO_TRY(std::unique_ptr<ExecControl::Turn> turn, co_await control.take_turn(target.exec));
  if (target.exec->ended() || target.exec->input().closed) co_return Result<void>();
  co_return co_await control.end_input(*turn);
}

// Nobody is there to be told when the client has gone.
Reply answered(const Result<void>& done) {
  if (done) return empty_message();
  if (done.error().code() == Code::kCancelled) return std::optional<http::Response>();
  return Error(done.error());
}

http::Task<Reply> send_input(Call& call, Plane plane) {
  ATOLL_CO_TRY(ProcessTarget target, co_await target_of(call, plane));
  ATOLL_CO_TRY(std::string bytes, parse_input(target.message, *target.exec));
  auto written = co_await write_input(call, target, std::move(bytes));
  co_return answered(written);
}

http::Task<Reply> close_stdin(Call& call, Plane plane) {
  ATOLL_CO_TRY(ProcessTarget target, co_await target_of(call, plane));
  if (has_terminal(*target.exec))
    co_return Error(Code::kConflict, "the input of a terminal is ended by typing Ctrl-D")
        .with_reason("stdin_closed");
  auto ended = co_await end_input(call, target);
  co_return answered(ended);
}

// {"start": {"process"}} first, then {"data": {"input"}} and {"keepalive"}.
http::Task<Result<void>> take_event(Call& call, Plane plane, ProcessTarget& target,
                                    const std::string& text) {
  ATOLL_CO_TRY(json::object message, parse_object(text));
  ObjectReader reader(message);
  const json::object* start = reader.optional_object("start");
  const json::object* data = reader.optional_object("data");
  ATOLL_CO_TRY_VOID(reader.settle());
  if (start) {
    sandbox::Ledger& ledger = plane.sandboxes.services().ledger;
    ATOLL_CO_TRY(target.exec, co_await selected_process(*start, target.sandbox, ledger));
  }
  if (!target.exec)
    co_return Error(Code::kInvalid, "the first message must be start").with_reason("invalid_field");
  if (!data) co_return Result<void>();
  ATOLL_CO_TRY(std::string bytes, parse_input(*data, *target.exec));
  co_return co_await write_input(call, target, std::move(bytes));
}

http::Task<Result<void>> take_events(Call& call, Plane plane, ProcessTarget& target) {
  Envelopes envelopes;
  std::string buffer(kStepBytes, '\0');
  std::span<char> room(buffer);
  while (true) {
    ATOLL_CO_TRY(size_t count, co_await call.exchange.read_body_some(room));
    if (count == 0) co_return Result<void>();
    envelopes.add({buffer.data(), count});
    while (true) {
      ATOLL_CO_TRY(auto text, envelopes.next());
      if (!text) break;
      ATOLL_CO_TRY_VOID(co_await take_event(call, plane, target, *text));
    }
  }
}

http::Task<Reply> stream_input(Call& call, Plane plane) {
  ProcessTarget target;
  ATOLL_CO_TRY(target.sandbox, running_sandbox(call, plane));
  auto taken = co_await take_events(call, plane, target);
  if (!taken && taken.error().code() == Code::kCancelled) co_return std::optional<http::Response>();
  if (!taken) co_return std::move(taken).error();
  http::Response response;
  response.headers.add("Content-Type", std::string(kStreamType));
  response.body = envelope("{}") + end_of_stream();
  co_return std::optional(std::move(response));
}

}  // namespace

http::Task<Result<ProcessTarget>> target_of(Call& call, Plane plane) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, running_sandbox(call, plane));
  ATOLL_CO_TRY(json::object message, parse_object(call.body));
  sandbox::Ledger& ledger = plane.sandboxes.services().ledger;
  ATOLL_CO_TRY(std::shared_ptr<Exec> exec, co_await selected_process(message, sandbox, ledger));
  ProcessTarget target{std::move(sandbox), std::move(exec), std::move(message)};
  co_return target;
}

void add_process_input_routes(Router& router, Plane plane) {
  add_unary(router, plane, "process.Process/SendInput", send_input);
  add_unary(router, plane, "process.Process/CloseStdin", close_stdin);
  add_streaming(router, plane, "process.Process/StreamInput", stream_input);
}

}  // namespace atl::api::e2b
