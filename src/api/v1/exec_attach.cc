#include "api/v1/exec_attach.h"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/json/object.hpp>

#include "api/json_reader.h"
#include "api/json_reply.h"
#include "api/query.h"
#include "api/v1/exec_input.h"
#include "api/v1/exec_json.h"
#include "api/v1/execs.h"
#include "api/v1/sandboxes.h"
#include "sandbox/pause.h"

namespace atl::api::v1 {

namespace json = boost::json;
using agent::Stream;
using http::WebSocket;
using sandbox::Exec;
using sandbox::ExecControl;
using sandbox::Sandbox;
using sandbox::Sandboxes;

namespace {

constexpr size_t kPieceBytes = 64 * 1024;
constexpr unsigned kNormalClosure = 1000;
constexpr unsigned kBadMessage = 1008;
constexpr unsigned kTakenOver = 4001;

struct AttachCall {
  uint64_t since = 0;
  bool only_new_errors = false;  // stderr has no offset here: who comes again would see it twice
  bool takeover = false;
};

Result<AttachCall> parse_attach(const http::Request& request, const Exec& exec) {
  AttachCall attach;
  ATOLL_TRY(auto since, number_parameter("since", request));
  ATOLL_TRY(attach.takeover, flag_parameter("takeover", request));
  attach.since = since.value_or(0);
  attach.only_new_errors = since.has_value();
  if (attach.since > exec.output().end(Stream::kStdout))
    return Error(Code::kInvalid, "since is beyond what was printed")
        .with_reason("offset_beyond_end")
        .with_field("since");
  return attach;
}

// One attached client: two pumps, of which only that of the output writes to the socket.
class Terminal {
 public:
  Terminal(std::shared_ptr<Sandbox> sandbox, std::shared_ptr<Exec> exec, WebSocket& socket)
      : sandbox_(std::move(sandbox)), exec_(std::move(exec)), socket_(socket) {
    exec_->input().attached = true;
    number_ = ++exec_->input().attachment;
    exec_->notify();
  }
  ~Terminal() {
    if (!is_taken_over()) exec_->input().attached = false;
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Ends when the client has gone or was told why it must.
  http::Task<void> pump_output(AttachCall attach);
  http::Task<void> pump_input();

 private:
  bool is_taken_over() const { return exec_->input().attachment != number_; }
  http::Task<Result<bool>> write_piece(Stream stream, uint64_t& offset);
  http::Task<Result<void>> write_output(AttachCall attach);
  http::Task<Result<void>> say(json::object object);
  http::Task<Result<void>> obey(WebSocket::Message message);
  http::Task<Result<void>> write_input(std::string_view bytes);
  http::Task<Result<void>> end_input();
  // The last words of a client that broke the rules; pump_output says them.
  void refuse(const Error& error);

  std::shared_ptr<Sandbox> sandbox_;
  std::shared_ptr<Exec> exec_;
  WebSocket& socket_;
  uint64_t number_ = 0;
  std::optional<std::string> refused_;
};

http::Task<Result<void>> Terminal::say(json::object object) {
  std::string text = json_text(object);
  co_return co_await socket_.write(WebSocket::Kind::kText, text);
}

http::Task<Result<bool>> Terminal::write_piece(Stream stream, uint64_t& offset) {
  ATOLL_CO_TRY(std::string piece, exec_->output().read(stream, offset, kPieceBytes));
  if (piece.empty()) co_return false;
  offset += piece.size();
  ATOLL_CO_TRY_VOID(co_await socket_.write(WebSocket::Kind::kBinary, piece));
  co_return true;
}

// Returns when there is nothing more to write: the exec has ended, or the client must go.
http::Task<Result<void>> Terminal::write_output(AttachCall attach) {
  uint64_t output = attach.since;
  uint64_t errors = attach.only_new_errors ? exec_->output().end(Stream::kStderr) : 0;
  while (!is_taken_over() && !refused_) {
    bool ended = exec_->ended();
    ATOLL_CO_TRY(bool from_output, co_await write_piece(Stream::kStdout, output));
    ATOLL_CO_TRY(bool from_errors, co_await write_piece(Stream::kStderr, errors));
    if (from_output || from_errors) continue;
    if (ended) break;
    if (exec_->ended() || is_taken_over() || refused_) continue;
    bool changed = co_await exec_->wait_changed();
    if (!changed) co_return Error(Code::kCancelled, "the client has gone");
  }
  co_return Result<void>();
}

http::Task<void> Terminal::pump_output(AttachCall attach) {
  json::object offset;
  offset["offset"] = attach.since;
  auto written = co_await say(std::move(offset));
  if (written) written = co_await write_output(attach);
  if (!written) co_return;
  if (is_taken_over()) {
    static_cast<void>(co_await socket_.close(kTakenOver, "another client has attached"));
    co_return;
  }
  if (refused_) {
    static_cast<void>(co_await socket_.close(kBadMessage, *refused_));
    co_return;
  }
  json::object exit;
  exit["exit"] = exec_summary_json(exec_->row());
  written = co_await say(std::move(exit));
  if (written) static_cast<void>(co_await socket_.close(kNormalClosure, "the exec has ended"));
}

http::Task<Result<void>> Terminal::write_input(std::string_view bytes) {
  ExecControl& control = sandbox_->execs().control();
  ATOLL_CO_TRY(auto turn, co_await control.take_turn(exec_));
  auto written = co_await control.write(*turn, bytes);
  co_return written;
}

http::Task<Result<void>> Terminal::end_input() {
  ExecControl& control = sandbox_->execs().control();
  ATOLL_CO_TRY(auto turn, co_await control.take_turn(exec_));
  auto ended = co_await control.end_input(*turn);
  co_return ended;
}

http::Task<Result<void>> Terminal::obey(WebSocket::Message message) {
  if (message.kind == WebSocket::Kind::kBinary) co_return co_await write_input(message.data);
  ATOLL_CO_TRY(json::object object, parse_object(message.data));
  if (object.contains("signal")) {
    ATOLL_CO_TRY(int number, parse_signal(object));
    co_return sandbox_->execs().control().signal(*exec_, number);
  }
  ObjectReader reader(object);
  const json::object* resize = reader.optional_object("resize");
  auto eof = reader.optional_boolean("eof");
  if (!resize && !eof) reader.refuse("resize", "or signal or eof is required", "missing_field");
  ATOLL_CO_TRY_VOID(reader.finish());
  if (resize) {
    ATOLL_CO_TRY(agent::TerminalSize size, parse_terminal_size(*resize, "resize."));
    ATOLL_CO_TRY_VOID(check_terminal(*exec_));
    ATOLL_CO_TRY_VOID(sandbox_->execs().control().resize(*exec_, size));
  }
  if (eof.value_or(false)) co_return co_await end_input();
  co_return Result<void>();
}

void Terminal::refuse(const Error& error) {
  refused_ = error.message();
  exec_->notify();
}

http::Task<void> Terminal::pump_input() {
  while (true) {
    auto message = co_await socket_.read();
    if (!message) co_return;
    // Not ended here: the other pump has something left to say before the socket is closed.
    if (refused_ || is_taken_over()) continue;
    auto obeyed = co_await obey(std::move(*message));
    // What comes too late for the exec is no mistake of the client.
    if (!obeyed && obeyed.error().code() == Code::kInvalid) refuse(obeyed.error());
  }
}

http::Task<Reply> attach(Call& call, Sandboxes& sandboxes) {
  using namespace boost::asio::experimental::awaitable_operators;
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, sandboxes));
  ATOLL_CO_TRY(std::shared_ptr<Exec> exec, co_await named_exec(call, sandboxes));
  ATOLL_CO_TRY_VOID(co_await sandbox::Pause::wake(sandbox));
  ATOLL_CO_TRY(AttachCall parsed, parse_attach(call.exchange.request(), *exec));
  if (!call.exchange.wants_web_socket())
    co_return Error(Code::kInvalid, "this route speaks WebSocket only")
        .with_reason("web_socket_required");
  if (exec->input().attached && !parsed.takeover)
    co_return Error(Code::kConflict, "another client is attached").with_reason("attached");
  ATOLL_CO_TRY(std::unique_ptr<WebSocket> socket, co_await call.exchange.accept_web_socket());
  Terminal terminal(sandbox, exec, *socket);
  auto output = terminal.pump_output(parsed);
  auto input = terminal.pump_input();
  co_await (std::move(output) || std::move(input));
  co_return std::optional<http::Response>();
}

}  // namespace

void add_exec_attach_route(Router& router, Sandboxes& sandboxes) {
  auto action = [&sandboxes](Call& call) { return attach(call, sandboxes); };
  router.add({.method = http::Method::kGet,
              .pattern = "/v1/sandboxes/{id}/execs/{exec}/attach",
              .action = action,
              .time = Route::Time::kLong});
}

}  // namespace atl::api::v1
