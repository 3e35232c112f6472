#include "sandbox/exec_control.h"

#include <signal.h>

#include "async/spawn.h"
#include "base/log.h"

namespace atl::sandbox {

namespace {

// How long input waits for a stream before its sender is told to come again.
constexpr std::chrono::seconds kStreamPatience{10};
constexpr std::chrono::seconds kDeliveryTime{30};

Error not_running() {
  return Error(Code::kConflict, "the exec is not running").with_reason("exec_not_running");
}

Error agent_unavailable() {
  return Error(Code::kUnavailable, "the agent's stream is being taken up again")
      .with_reason("agent_unavailable");
}

// Nothing if more input can be taken.
Result<void> check_open(Exec& exec) {
  if (exec.ended()) return not_running();
  if (exec.input().closed)
    return Error(Code::kConflict,
                 "the input is closed after " + std::to_string(exec.input().taken) + " bytes")
        .with_reason("stdin_closed");
  return {};
}

}  // namespace

void ExecControl::link_up(std::shared_ptr<isolate::AgentLink> link) {
  link_ = std::move(link);
  ++streams_;
  for (const auto& [number, grant] : grants_) link_->send(agent::encode(number, grant));
}

void ExecControl::start(const std::string& start_frame) const {
  if (link_) link_->send(start_frame);
}

void ExecControl::set_waiting(WaitingProgram waiting, Channels& channels) {
  waiting_ = std::move(waiting);
  channels_ = &channels;
}

std::optional<WaitingProgram> ExecControl::take_waiting(const ExecRequest& request,
                                                        uint32_t& next_number) {
  std::optional<WaitingProgram> waiting = std::exchange(waiting_, std::nullopt);
  if (!waiting || waiting->fits(request)) return waiting;
  link_->send(agent::encode_signal(waiting->number, SIGKILL));
  next_number = waiting->number + 1;
  return std::nullopt;
}

void ExecControl::forget(uint32_t number) {
  grants_.erase(number);
  if (waiting_ && waiting_->number == number) waiting_.reset();
}

namespace {

// The channel must not go before the program has all of the message.
Task<void> deliver(std::unique_ptr<Channel> channel, std::string message) {
  SteadyTime deadline = std::chrono::steady_clock::now() + kDeliveryTime;
  auto written = co_await channel->write(message, deadline);
  if (!written) co_return;  // it has ended, and its exit says how
  channel->end_writing();
  auto closed = co_await channel->read(deadline);
  if (!closed) log_warning("a program did not take its beginning", {closed.error()});
}

}  // namespace

void ExecControl::grant(const Exec& exec, agent::Grant grant) {
  grants_.insert_or_assign(exec.id().number(), grant);
  if (link_) link_->send(agent::encode(exec.id().number(), grant));
}

void ExecControl::begin(const WaitingProgram& waiting, const ExecRequest& request,
                        const Exec& exec) {
  if (request.context) {
    grant(exec, {request.output_limit_bytes, request.output_limit_bytes});
    link_->send(agent::encode(waiting.number, agent::Input{0, request.input}));
    return;
  }
  agent::Beginning begins{.timeout_ms = request.timeout_ms,
                          .cpu_time_ms = request.cpu_time_ms,
                          .output_limit_bytes = request.output_limit_bytes,
                          .on_output_limit = request.on_output_limit};
  auto channel = channels_->open_control(agent::OpenControl{waiting.number, begins});
  if (!channel) {
    // Too many are open: without a beginning it ends, and its verdict says that it had none.
    link_->send(agent::encode_signal(waiting.number, SIGKILL));
    return;
  }
  // detached: owns the channel, which ends with the program or the stream
  spawn(channels_->executor(), deliver(std::move(*channel), beginning_message(request)));
  if (!request.input.empty())
    link_->send(agent::encode(waiting.number, agent::Input{0, request.input}));
  if (request.input_mode == agent::InputMode::kEnds)
    link_->send(agent::encode_input_end(waiting.number, request.input.size()));
}

Result<void> ExecControl::signal(const Exec& exec, int signal_number) const {
  if (exec.ended()) return not_running();
  if (!link_) return agent_unavailable();
  link_->send(agent::encode_signal(exec.id().number(), static_cast<uint8_t>(signal_number)));
  return {};
}

Result<void> ExecControl::resize(const Exec& exec, agent::TerminalSize size) const {
  if (exec.ended()) return not_running();
  if (!link_) return agent_unavailable();
  link_->send(agent::encode(exec.id().number(), size));
  return {};
}

ExecControl::Turn::Turn(std::shared_ptr<Exec> exec) : exec_(std::move(exec)) {
  exec_->input().busy = true;
}

ExecControl::Turn::~Turn() {
  exec_->input().busy = false;
  exec_->notify();
}

Task<Result<void>> ExecControl::wait(Exec& exec) const {
  bool has_stream = link_ != nullptr;
  auto deadline = has_stream ? std::chrono::steady_clock::time_point::max()
                             : std::chrono::steady_clock::now() + kStreamPatience;
  bool changed = co_await exec.wait_changed(deadline);
  if (changed) co_return Result<void>();
  if (has_stream) co_return Error(Code::kCancelled, "the caller has gone");
  co_return agent_unavailable();
}

Task<Result<std::unique_ptr<ExecControl::Turn>>> ExecControl::take_turn(
    std::shared_ptr<Exec> exec) const {
  while (!exec->ended() && (exec->input().busy || !exec->input().known))
    ATOLL_CO_TRY_VOID(co_await wait(*exec));
  auto turn = std::make_unique<Turn>(exec);
  auto sent = co_await send_pending(*exec);
  // An input that is closed tells the caller so when it writes.
  if (!sent && sent.error().code() != Code::kConflict) co_return std::move(sent).error();
  co_return turn;
}

bool ExecControl::can_send(const Exec& exec, unsigned long sent_on) const {
  // Before it has started, its start frame may still be under way.
  return link_ && exec.started() && sent_on != streams_;
}

Task<Result<void>> ExecControl::write(const Turn& turn, std::string_view bytes) const {
  ExecInput& input = turn.exec().input();
  // One piece at a time is within every credit that the agent gives.
  while (!bytes.empty()) {
    std::string_view piece = bytes.substr(0, agent::kMaxInputBytes);
    bytes.remove_prefix(piece.size());
    input.pending = piece;
    input.pending_at = input.taken;
    ATOLL_CO_TRY_VOID(co_await send_pending(turn.exec()));
  }
  co_return Result<void>();
}

Task<Result<void>> ExecControl::send_pending(Exec& exec) const {
  ExecInput& input = exec.input();
  unsigned long sent_on = 0;
  while (input.taken < input.pending_at + input.pending.size()) {
    auto open = check_open(exec);
    if (!open) input.pending.clear();
    ATOLL_CO_TRY_VOID(open);
    if (can_send(exec, sent_on)) {
      std::string_view rest = input.pending;
      rest.remove_prefix(input.taken - input.pending_at);
      link_->send(agent::encode(exec.id().number(), agent::Input{input.taken, rest}));
      sent_on = streams_;
    }
    ATOLL_CO_TRY_VOID(co_await wait(exec));
  }
  input.pending = std::string();
  co_return Result<void>();
}

Task<Result<void>> ExecControl::end_input(const Turn& turn) const {
  Exec& exec = turn.exec();
  unsigned long sent_on = 0;
  while (!exec.input().closed && !exec.ended()) {
    if (can_send(exec, sent_on)) {
      link_->send(agent::encode_input_end(exec.id().number(), exec.input().taken));
      sent_on = streams_;
    }
    ATOLL_CO_TRY_VOID(co_await wait(exec));
  }
  co_return Result<void>();
}

}  // namespace atl::sandbox
