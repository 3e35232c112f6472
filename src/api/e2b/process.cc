#include "api/e2b/process.h"

#include <signal.h>

#include <boost/json/array.hpp>

#include "api/e2b/process_input.h"
#include "api/e2b/process_request.h"
#include "api/e2b/process_stream.h"
#include "api/e2b/rpc.h"
#include "api/json_reply.h"
#include "api/v1/exec_input.h"
#include "api/v1/exec_json.h"
#include "sandbox/files.h"

namespace atl::api::e2b {

namespace json = boost::json;
using sandbox::Exec;
using sandbox::ExecRequest;
using sandbox::Sandbox;

namespace {

// How long the end of a process can still be asked for.
constexpr std::chrono::seconds kEndKept{30};

std::optional<http::Response> empty_message() { return json_reply(200, json::object()); }

// A process would otherwise begin and end with a word about it in its output.
http::Task<Result<void>> check_place(std::shared_ptr<Sandbox> sandbox, const ExecRequest& request) {
  sandbox::Files files(sandbox, request.user);
  bool known_user = request.user == "user" || request.user == "root";
  if (!known_user) {
    std::string root = "/";
    auto seen = co_await files.stat(root);
    if (!seen)
      co_return Error(Code::kDenied, "invalid username: '" + request.user + "'")
          .with_reason("unauthenticated");
  }
  if (request.directory.empty()) co_return Result<void>();
  sandbox::ListFiles one{.path = request.directory, .cursor = {}, .depth = 1, .limit = 1};
  auto listed = co_await files.list(one);
  bool absent = !listed && (listed.error().reason() == "file_not_found" ||
                            listed.error().reason() == "not_directory");
  if (absent)
    co_return Error(Code::kInvalid, "cwd '" + request.directory + "' does not exist")
        .with_reason("invalid_path");
  co_return Result<void>();
}

http::Task<Reply> start_process(Call& call, Plane plane) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, running_sandbox(call, plane));
  const http::Request& asked = call.exchange.request();
  ATOLL_CO_TRY(std::string user, user_of(asked, *sandbox));
  ATOLL_CO_TRY(json::object message, co_await read_message(call));
  ATOLL_CO_TRY(ExecRequest request, parse_start(message, *sandbox, std::move(user)));
  auto timeout = timeout_of(asked);
  if (timeout) request.timeout_ms = static_cast<uint32_t>(timeout->count());
  ATOLL_CO_TRY_VOID(co_await check_place(sandbox, request));
  std::string description = v1::describe(request);
  ATOLL_CO_TRY(std::shared_ptr<Exec> exec,
               co_await sandbox->start_exec(std::move(request), std::move(description)));
  // Its own limit ends it, and the stream with it.
  Patience patience = patience_of(asked);
  patience.deadline = SteadyTime::max();
  v1::OutputPosition begin;
  co_return co_await follow_process(call, exec, begin, patience);
}

bool ended_lately(const store::ExecRow& row, WallTime now) {
  auto ended = WallTime{std::chrono::milliseconds(row.created_at_ms)} +
               std::chrono::microseconds(row.start_us + row.wall_us + row.drain_us);
  return row.state == "ended" && now - ended < kEndKept;
}

// The last one of that pid that has ended a short time ago.
http::Task<Result<std::shared_ptr<Exec>>> find_ended(std::shared_ptr<Sandbox> sandbox, uint32_t pid,
                                                     WallTime now) {
  std::optional<ExecId> after, found;
  while (true) {
    ATOLL_CO_TRY(auto rows, co_await sandbox->execs().list(after, store::kMaxPageRows));
    for (const store::ExecRow& row : rows)
      if (row.pid == pid && ended_lately(row, now)) found = row.id;
    if (rows.size() < store::kMaxPageRows) break;
    after = rows.back().id;
  }
  if (!found) co_return no_such_process(pid);
  co_return co_await sandbox->execs().open(*found);
}

// From now on: what was printed before is not told again.
http::Task<Reply> connect(Call& call, Plane plane) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, running_sandbox(call, plane));
  Patience patience = patience_of(call.exchange.request());
  ATOLL_CO_TRY(json::object message, co_await read_message(call));
  sandbox::Ledger& ledger = plane.sandboxes.services().ledger;
  auto live = co_await selected_process(message, sandbox, ledger);
  std::shared_ptr<Exec> exec = live ? *live : nullptr;
  if (!exec) {
    if (live.error().code() != Code::kNotFound) co_return std::move(live).error();
    ATOLL_CO_TRY(uint32_t pid, selected_pid(message));
    WallTime now = plane.sandboxes.services().clock.wall_now();
    ATOLL_CO_TRY(exec, co_await find_ended(sandbox, pid, now));
    if (!exec) co_return no_such_process(pid);
  }
  v1::OutputPosition end;
  for (agent::Stream stream : {agent::Stream::kStdout, agent::Stream::kStderr})
    end.of(stream) = exec->output().end(stream);
  co_return co_await follow_process(call, exec, end, patience);
}

http::Task<Reply> list_processes(Call& call, Plane plane) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, running_sandbox(call, plane));
  sandbox::Ledger& ledger = plane.sandboxes.services().ledger;
  ATOLL_CO_TRY(auto live, co_await live_processes(sandbox, ledger));
  json::array processes;
  for (const auto& exec : live) processes.push_back(process_json(*exec));
  json::object object;
  object["processes"] = std::move(processes);
  co_return std::optional(json_reply(200, object));
}

Result<int> parse_signal(const json::object& message) {
  const json::value* value = message.if_contains("signal");
  bool is_kill = value && (*value == "SIGNAL_SIGKILL" || *value == SIGKILL);
  bool is_term = value && (*value == "SIGNAL_SIGTERM" || *value == SIGTERM);
  if (is_kill) return SIGKILL;
  if (is_term) return SIGTERM;
  return Error(Code::kInvalid, "signal must be SIGNAL_SIGKILL or SIGNAL_SIGTERM")
      .with_reason("invalid_field");
}

http::Task<Reply> send_signal(Call& call, Plane plane) {
  ATOLL_CO_TRY(ProcessTarget target, co_await target_of(call, plane));
  ATOLL_CO_TRY(int number, parse_signal(target.message));
  ATOLL_CO_TRY_VOID(target.sandbox->execs().control().signal(*target.exec, number));
  co_return empty_message();
}

http::Task<Reply> update(Call& call, Plane plane) {
  ATOLL_CO_TRY(ProcessTarget target, co_await target_of(call, plane));
  ATOLL_CO_TRY(auto size, parse_terminal(target.message));
  if (!size) co_return empty_message();
  ATOLL_CO_TRY_VOID(v1::check_terminal(*target.exec));
  ATOLL_CO_TRY_VOID(target.sandbox->execs().control().resize(*target.exec, *size));
  co_return empty_message();
}

}  // namespace

void add_process_routes(Router& router, Plane plane) {
  add_streaming(router, plane, "process.Process/Start", start_process);
  add_streaming(router, plane, "process.Process/Connect", connect);
  add_unary(router, plane, "process.Process/List", list_processes);
  add_unary(router, plane, "process.Process/SendSignal", send_signal);
  add_unary(router, plane, "process.Process/Update", update);
  add_process_input_routes(router, plane);
}

}  // namespace atl::api::e2b
