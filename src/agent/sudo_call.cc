#include "agent/sudo_call.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/linger_guard.h"
#include "agent/sudo_protocol.h"
#include "linux/pidfd.h"

namespace atl::agent {
namespace {

constexpr unsigned char kMaxSignal = 64;

bool try_later(int system_errno) { return system_errno == EAGAIN || system_errno == EINTR; }

SudoEnd end_with(SudoEnding ending, std::string_view operation, int system_errno) {
  SudoEnd end = {};
  end.ending = ending;
  operation.substr(0, end.operation.size() - 1).copy(end.operation.data(), end.operation.size());
  end.system_errno = system_errno;
  return end;
}

SudoEnd describe(int wait_status, int report) {
  StartReport failure = {};
  // The command has ended, so what it had to say about its start is in the pipe.
  if (read(report, &failure, sizeof failure) == sizeof failure) {
    bool its_own = is_programs_fault(failure.step);
    return end_with(its_own ? SudoEnding::kNotExecuted : SudoEnding::kRefused,
                    step_name(failure.step), failure.system_errno);
  }
  bool signaled = WIFSIGNALED(wait_status);
  SudoEnd end = {};
  end.ending = signaled ? SudoEnding::kSignaled : SudoEnding::kExited;
  end.status = static_cast<uint8_t>(signaled ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status));
  return end;
}

// A client that takes no answer, or is gone, gets none.
void tell(int socket, const SudoEnd& end) {
  (void)send(socket, &end, sizeof end, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

SudoCall::~SudoCall() {
  LingerGuard guard;  // messages that nobody has read may carry descriptors
  socket_.reset();
}

std::optional<SudoCommand> SudoCall::take_request() {
  auto command = receive_sudo_request(socket_.get());
  if (command) return std::move(*command);
  if (!try_later(command.error().system_errno())) refuse(command.error());
  return std::nullopt;
}

void SudoCall::start(SudoCommand& command, ExecTable& execs) {
  auto caller = find_sudo_caller(socket_.get(), command.sender);
  if (!caller) return refuse(caller.error());
  command.start.open_files = caller->open_files;
  command.start.terminal.reset();
  command.start.input.clear();
  Streams streams = {command.fds.number(0), command.fds.number(1), command.fds.number(2)};
  auto launched = execs.join(caller->leaf, command.start, streams);
  if (!launched) return refuse(launched.error());
  pid_ = launched->pid;
  pidfd_ = std::move(launched->pidfd);
  report_ = std::move(launched->report);
  phase_ = Phase::kRunning;
}

void SudoCall::refuse(const Error& error) {
  tell(socket_.get(), end_with(SudoEnding::kRefused, error.message(), error.system_errno()));
  phase_ = Phase::kOver;
}

void SudoCall::take_signal() {
  // One byte more than fits, so that a longer message is noticed.
  unsigned char bytes[sizeof(SudoSignal) + 1] = {};
  LingerGuard guard;  // descriptors that come along are dropped by the call
  ssize_t count = recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (count < 0 && try_later(errno)) return;
  if (count == sizeof(SudoSignal) && bytes[0] > 0 && bytes[0] <= kMaxSignal) {
    // A command that has just ended takes no signal any more; its end is about to be told.
    (void)linux::send_signal(pidfd_.get(), bytes[0]);
    return;
  }
  // Nobody is left who could be told the end, or who could end the command.
  (void)linux::send_signal(pidfd_.get(), SIGKILL);
  phase_ = Phase::kOver;
}

void SudoCall::reaped(int wait_status) {
  tell(socket_.get(), describe(wait_status, report_.get()));
  phase_ = Phase::kOver;
}

}  // namespace atl::agent
