#include "sandbox/exec_control.h"

namespace atl::sandbox {

namespace {

// How long input waits for a stream before its sender is told to come again.
constexpr std::chrono::seconds kStreamPatience{10};

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
  co_return std::make_unique<Turn>(exec);
}

bool ExecControl::can_send(const Exec& exec, unsigned long sent_on) const {
  // Before it has started, its input may be known only by a start frame that is still under way.
  return link_ && exec.started() && sent_on != streams_;
}

Task<Result<void>> ExecControl::write(const Turn& turn, std::string_view bytes) const {
  Exec& exec = turn.exec();
  const uint64_t begin = exec.input().taken;
  // One piece at a time is within every credit that the agent gives.
  for (uint64_t end = begin; end < begin + bytes.size();) {
    end = std::min<uint64_t>(end + agent::kMaxInputBytes, begin + bytes.size());
    unsigned long sent_on = 0;
    while (exec.input().taken < end) {
      ATOLL_CO_TRY_VOID(check_open(exec));
      uint64_t from = exec.input().taken;
      if (can_send(exec, sent_on)) {
        send_input(exec, from, bytes.substr(from - begin, end - from));
        sent_on = streams_;
      }
      ATOLL_CO_TRY_VOID(co_await wait(exec));
    }
  }
  co_return Result<void>();
}

void ExecControl::send_input(const Exec& exec, uint64_t offset, std::string_view bytes) const {
  link_->send(agent::encode(exec.id().number(), agent::Input{offset, bytes}));
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
