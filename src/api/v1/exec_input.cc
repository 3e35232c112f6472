#include "api/v1/exec_input.h"

#include <array>

#include <boost/json/parse.hpp>

#include "api/json_reader.h"
#include "api/json_reply.h"
#include "api/query.h"
#include "api/v1/execs.h"
#include "api/v1/sandboxes.h"
#include "api/v1/signal_names.h"
#include "sandbox/pause.h"

namespace atl::api::v1 {

namespace json = boost::json;
using sandbox::Exec;
using sandbox::ExecControl;
using sandbox::Sandbox;
using sandbox::Sandboxes;

namespace {

constexpr size_t kPieceBytes = agent::kMaxInputBytes;

// A field of what the exec was asked to be, which outlives a restart of atolld.
json::value requested(std::string_view field, const Exec& exec) {
  json::error_code error;
  json::value request = json::parse(exec.row().request, error);
  if (error || !request.is_object()) return nullptr;
  const json::value* value = request.get_object().if_contains(field);
  return value ? *value : json::value();
}

Error not_running() {
  return Error(Code::kConflict, "the exec is not running").with_reason("exec_not_running");
}

Error client_has_gone() { return Error(Code::kCancelled, "the client has gone"); }

struct InputCall {
  std::optional<uint64_t> offset;
  bool ends = false;
};

Result<InputCall> parse_input(const http::Request& request) {
  InputCall input;
  ATOLL_TRY(input.offset, number_parameter("offset", request));
  ATOLL_TRY(input.ends, flag_parameter("eof", request));
  return input;
}

// How many bytes at the start of the body the agent has already.
Result<uint64_t> known_bytes(const InputCall& input, uint64_t taken) {
  uint64_t offset = input.offset.value_or(taken);
  if (offset <= taken) return taken - offset;
  return Error(Code::kConflict, "offset is " + std::to_string(offset) + " but only " +
                                    std::to_string(taken) + " bytes were taken")
      .with_reason("stdin_gap")
      .with_field("offset");
}

// Hands the body to the agent piece by piece, but for the bytes that it has already.
http::Task<Result<void>> pump(Call& call, ExecControl& control, const ExecControl::Turn& turn,
                              uint64_t skip) {
  std::string piece(kPieceBytes, '\0');
  while (true) {
    std::span<char> room(piece);
    ATOLL_CO_TRY(size_t count, co_await call.exchange.read_body_some(room));
    if (count == 0) co_return Result<void>();
    std::string_view bytes(piece.data(), count);
    size_t known = std::min<uint64_t>(skip, count);
    skip -= known;
    bytes.remove_prefix(known);
    if (bytes.empty()) continue;
    // Only here, not while the body is read: the watch reads ahead.
    auto watch = call.exchange.watch_peer();
    if (watch.gone()) co_return client_has_gone();
    ATOLL_CO_TRY_VOID(co_await control.write(turn, bytes));
  }
}

http::Task<Result<std::unique_ptr<ExecControl::Turn>>> take_turn(Call& call, ExecControl& control,
                                                                 std::shared_ptr<Exec> exec) {
  auto watch = call.exchange.watch_peer();
  if (watch.gone()) co_return client_has_gone();
  if (exec->output().kind() == sandbox::ExecKind::kInterpreter)
    co_return Error(Code::kConflict, "what an interpreter is told comes by its context")
        .with_reason("stdin_closed");
  co_return co_await control.take_turn(exec);
}

http::Task<Result<void>> end_input(Call& call, ExecControl& control,
                                   const ExecControl::Turn& turn) {
  auto watch = call.exchange.watch_peer();
  if (watch.gone()) co_return client_has_gone();
  co_return co_await control.end_input(turn);
}

http::Task<Reply> write_stdin(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, sandboxes));
  ATOLL_CO_TRY(std::shared_ptr<Exec> exec, co_await named_exec(call, sandboxes));
  ATOLL_CO_TRY_VOID(co_await sandbox::Pause::wake(sandbox));
  ATOLL_CO_TRY(InputCall input, parse_input(call.exchange.request()));
  if (exec->ended()) co_return not_running();
  if (requested("stdin_open", *exec) != true)
    co_return Error(Code::kConflict, "the exec was started without an open stdin")
        .with_reason("stdin_closed");
  ExecControl& control = sandbox->execs().control();
  ATOLL_CO_TRY(std::unique_ptr<ExecControl::Turn> turn, co_await take_turn(call, control, exec));
  if (exec->ended()) co_return not_running();
  ATOLL_CO_TRY(uint64_t skip, known_bytes(input, exec->input().taken));
  auto pumped = co_await pump(call, control, *turn, skip);
  if (pumped && input.ends) pumped = co_await end_input(call, control, *turn);
  if (!pumped && pumped.error().code() == Code::kCancelled)
    co_return std::optional<http::Response>();  // nobody is there to be answered
  if (!pumped)
    co_return std::move(pumped).error().with_context(std::to_string(exec->input().taken) +
                                                     " bytes were taken");
  json::object object;
  object["offset"] = exec->input().taken;
  object["closed"] = exec->input().closed || exec->ended();
  co_return std::optional(json_reply(200, object));
}

std::optional<http::Response> no_content() {
  http::Response response;
  response.status = 204;
  return response;
}

http::Task<Reply> resize(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, sandboxes));
  ATOLL_CO_TRY(std::shared_ptr<Exec> exec, co_await named_exec(call, sandboxes));
  ATOLL_CO_TRY_VOID(co_await sandbox::Pause::wake(sandbox));
  ATOLL_CO_TRY(json::object object, parse_object(call.body));
  ATOLL_CO_TRY(agent::TerminalSize size, parse_terminal_size(object, ""));
  ATOLL_CO_TRY_VOID(check_terminal(*exec));
  ATOLL_CO_TRY_VOID(sandbox->execs().control().resize(*exec, size));
  co_return no_content();
}

http::Task<Reply> signal(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, sandboxes));
  ATOLL_CO_TRY(std::shared_ptr<Exec> exec, co_await named_exec(call, sandboxes));
  ATOLL_CO_TRY_VOID(co_await sandbox::Pause::wake(sandbox));
  ATOLL_CO_TRY(json::object object, parse_object(call.body));
  ATOLL_CO_TRY(int number, parse_signal(object));
  ATOLL_CO_TRY_VOID(sandbox->execs().control().signal(*exec, number));
  co_return no_content();
}

}  // namespace

Result<agent::TerminalSize> parse_terminal_size(const json::object& object, std::string prefix) {
  ObjectReader reader(object, std::move(prefix));
  agent::TerminalSize size{};
  for (auto [name, side] : {std::pair("cols", &size.columns), std::pair("rows", &size.rows)}) {
    auto given = reader.optional_small(name, 1, agent::kMaxTerminalSide);
    if (!given) reader.refuse(name, "is required", "missing_field");
    *side = static_cast<uint16_t>(given.value_or(0));
  }
  ATOLL_TRY_VOID(reader.finish());
  return size;
}

Result<int> parse_signal(const json::object& object) {
  ObjectReader reader(object);
  const json::value* value = object.if_contains("signal");
  bool is_number = value && (value->is_int64() || value->is_uint64());
  std::string name = is_number ? std::to_string(reader.optional_small("signal", 1, 64).value_or(0))
                               : reader.text("signal", 16);
  auto number = signal_number(name);
  if (!number) reader.refuse("signal", "must be a name such as \"TERM\" or a number up to 64");
  ATOLL_TRY_VOID(reader.finish());
  return *number;
}

Result<void> check_terminal(const Exec& exec) {
  if (exec.ended()) return not_running();
  if (requested("pty", exec).is_object()) return {};
  return Error(Code::kConflict, "the exec was started without a terminal")
      .with_reason("no_terminal");
}

void add_exec_input_routes(Router& router, Sandboxes& sandboxes) {
  auto bind = [&sandboxes](auto action) {
    return [&sandboxes, action](Call& call) { return action(call, sandboxes); };
  };
  const std::string base = "/v1/sandboxes/{id}/execs/{exec}";
  router.add({.method = http::Method::kPost,
              .pattern = base + "/stdin",
              .action = bind(write_stdin),
              .body = Route::Body::kStream,
              .time = Route::Time::kLong});
  router.add({http::Method::kPost, base + "/resize", bind(resize)});
  router.add({http::Method::kPost, base + "/signal", bind(signal)});
}

}  // namespace atl::api::v1
