#include "api/e2b/process_stream.h"

#include <signal.h>

#include "api/base64.h"
#include "api/e2b/process_request.h"
#include "sandbox/verdict.h"

namespace atl::api::e2b {

namespace json = boost::json;
using agent::Stream;
using sandbox::Exec;
using v1::OutputPosition;

namespace {

constexpr size_t kPieceBytes = 32 * 1024;

Error client_has_gone() { return Error(Code::kCancelled, "the client has gone"); }

json::object event_json(std::string_view name, json::object inner) {
  json::object event;
  event[name] = std::move(inner);
  json::object message;
  message["event"] = std::move(event);
  return message;
}

std::string signal_text(int number) {
  switch (number) {
    case SIGKILL:
      return "signal: killed";
    case SIGTERM:
      return "signal: terminated";
    case SIGINT:
      return "signal: interrupt";
    case SIGSEGV:
      return "signal: segmentation fault";
    case SIGABRT:
      return "signal: aborted";
    default:
      return "signal: " + std::to_string(number);
  }
}

json::object end_json(const store::ExecRow& row) {
  bool exited = row.exit_code.has_value();
  std::string status = exited       ? "exit status " + std::to_string(*row.exit_code)
                       : row.signal ? signal_text(*row.signal)
                                    : "ended: " + row.verdict;
  json::object end;
  end["exitCode"] = exited ? *row.exit_code : -1;
  end["exited"] = exited;
  end["status"] = status;
  if (!exited || *row.exit_code != 0) end["error"] = status;
  return event_json("end", std::move(end));
}

// Waits for news of it. kTimeout: nothing has changed until then.
http::Task<Result<void>> wait_changed(Call& call, Exec& exec, SteadyTime deadline) {
  auto watch = call.exchange.watch_peer();
  if (watch.gone()) co_return client_has_gone();
  bool changed = co_await exec.wait_changed(deadline);
  if (changed) co_return Result<void>();
  if (watch.gone()) co_return client_has_gone();
  if (std::chrono::steady_clock::now() < deadline) co_return client_has_gone();
  co_return Error(Code::kTimeout, "nothing was printed");
}

// False: there is nothing to send now.
http::Task<Result<bool>> send_piece(RpcStream& out, const Exec& exec, Stream stream,
                                    OutputPosition& position) {
  uint64_t& offset = position.of(stream);
  ATOLL_CO_TRY(std::string piece, exec.output().read(stream, offset, kPieceBytes));
  if (piece.empty()) co_return false;
  offset += piece.size();
  std::string_view name = has_terminal(exec)          ? "pty"
                          : stream == Stream::kStdout ? "stdout"
                                                      : "stderr";
  json::object data;
  data[name] = to_base64(piece);
  json::object message = event_json("data", std::move(data));
  ATOLL_CO_TRY_VOID(co_await out.send(message));
  co_return true;
}

http::Task<Result<void>> send_end(RpcStream& out, const Exec& exec) {
  // Its client asks next whether the sandbox is there; a proper end would say that it is.
  if (exec.row().verdict == sandbox::verdict_name(sandbox::Verdict::kSandboxGone))
    co_return Error(Code::kCancelled, "the sandbox has gone");
  json::object message = end_json(exec.row());
  co_return co_await out.finish(message);
}

http::Task<Result<void>> send_events(Call& call, Exec& exec, OutputPosition position,
                                     Patience patience) {
  RpcStream out(call);
  while (true) {
    bool ended = exec.ended();
    ATOLL_CO_TRY(bool printed, co_await send_piece(out, exec, Stream::kStdout, position));
    ATOLL_CO_TRY(bool warned, co_await send_piece(out, exec, Stream::kStderr, position));
    if (printed || warned) continue;
    if (ended) break;
    if (exec.ended()) continue;
    SteadyTime until = std::chrono::steady_clock::now() + patience.keepalive;
    until = std::min(until, patience.deadline);
    auto changed = co_await wait_changed(call, exec, until);
    if (changed) continue;
    if (changed.error().code() != Code::kTimeout) co_return changed;
    if (std::chrono::steady_clock::now() >= patience.deadline) {
      Error late =
          Error(Code::kTimeout, "the call has reached its deadline").with_reason("file_timeout");
      co_return co_await out.fail(late);
    }
    json::object keepalive = event_json("keepalive", {});
    ATOLL_CO_TRY_VOID(co_await out.send(keepalive));
  }
  co_return co_await send_end(out, exec);
}

http::Task<Result<void>> wait_started(Call& call, Exec& exec) {
  while (!exec.started() && !exec.ended()) {
    SteadyTime never = SteadyTime::max();
    ATOLL_CO_TRY_VOID(co_await wait_changed(call, exec, never));
  }
  if (exec.started()) co_return Result<void>();
  if (exec.row().verdict == sandbox::verdict_name(sandbox::Verdict::kPidsLimit))
    co_return Error(Code::kExhausted, exec.row().failure).with_reason("too_many_processes");
  co_return Error(Code::kUnavailable, "the process could not be started: " + exec.row().failure)
      .with_reason("isolate_failed");
}

http::Task<Result<void>> send_start(Call& call, const Exec& exec) {
  RpcStream out(call);
  json::object start;
  start["pid"] = exec.row().pid;
  json::object message = event_json("start", std::move(start));
  co_return co_await out.start(message);
}

}  // namespace

http::Task<Reply> follow_process(Call& call, std::shared_ptr<Exec> exec, OutputPosition position,
                                 Patience patience) {
  auto started = co_await wait_started(call, *exec);
  if (!started && started.error().code() == Code::kCancelled)
    co_return std::optional<http::Response>();
  if (!started) co_return std::move(started).error();
  Result<void> sent = co_await send_start(call, *exec);
  if (sent) sent = co_await send_events(call, *exec, position, patience);
  co_return std::optional<http::Response>();
}

}  // namespace atl::api::e2b
