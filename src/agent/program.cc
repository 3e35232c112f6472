#include "agent/program.h"

#include <signal.h>
#include <sys/wait.h>

#include "linux/pidfd.h"

namespace atl::agent {
namespace {

uint64_t micros_of(const timeval& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000 + static_cast<uint64_t>(time.tv_usec);
}

}  // namespace

void Program::launched(pid_t pid, Fd pidfd) {
  pid_ = pid;
  first_pid_ = static_cast<uint32_t>(pid);
  pidfd_ = std::move(pidfd);
  if (timeout_ms_ > 0)
    deadline_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms_);
}

void Program::let_go() {
  pid_.reset();
  pidfd_.reset();
  deadline_.reset();
}

void Program::reaped(int wait_status, const rusage& usage, Exit& exit) {
  let_go();
  bool signaled = WIFSIGNALED(wait_status);
  int status = signaled ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
  exit.ending = signaled ? Ending::kSignaled : Ending::kExited;
  exit.status = static_cast<uint8_t>(status);
  exit.cause = signaled ? cause_of(status) : Cause::kProgram;
  exit.user_us = micros_of(usage.ru_utime);
  exit.system_us = micros_of(usage.ru_stime);
  exit.peak_memory_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

Cause Program::cause_of(int signal_number) const {
  if ((client_signals_ >> (signal_number - 1) & 1) != 0) return Cause::kClient;
  return timed_out_ && signal_number == SIGKILL ? Cause::kWallTime : Cause::kProgram;
}

void Program::signal(uint8_t signal_number) {
  if (pid_) client_signals_ |= uint64_t{1} << (signal_number - 1);
  if (signal_number == SIGKILL) return kill();
  // A process that has just ended takes no signal any more; its status will say how it ended.
  if (pidfd_) (void)linux::send_signal(pidfd_.get(), signal_number);
}

void Program::kill() const {
  auto killed = leaf_.kill();
  // Without the leaf the main process can still be ended; the rest is the warden's, by the group
  // above.
  if (!killed && pidfd_) (void)linux::send_signal(pidfd_.get(), SIGKILL);
}

void Program::check_deadline(SteadyTime now) {
  if (!deadline_ || now < *deadline_) return;
  deadline_.reset();
  timed_out_ = true;
  kill();
}

}  // namespace atl::agent
