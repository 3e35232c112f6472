// One client of sudo: its connection, from the request to the word about the command's end.
// Everything it sends is hostile and bounded; nothing here waits for it.
#pragma once

#include <sys/types.h>

#include <optional>

#include "agent/exec_table.h"
#include "agent/sudo_request.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace atl::agent {

class SudoCall {
 public:
  enum class Phase : uint8_t { kWaiting, kRunning, kOver };

  SudoCall(Fd socket, SteadyTime deadline) : socket_(std::move(socket)), deadline_(deadline) {}
  ~SudoCall();
  SudoCall(const SudoCall&) = delete;
  SudoCall& operator=(const SudoCall&) = delete;

  int fd() const { return socket_.get(); }
  Phase phase() const { return phase_; }
  // Of its request.
  SteadyTime deadline() const { return deadline_; }
  // The command, until it is reaped.
  std::optional<pid_t> pid() const { return pid_; }

  // A message has arrived, or the client has gone: while it waits,
  std::optional<SudoCommand> take_request();
  void start(SudoCommand& command, ExecTable& execs);
  void refuse(const Error& error);
  // while its command runs,
  void take_signal();
  // and the end of that.
  void reaped(int wait_status);

 private:
  Fd socket_;
  SteadyTime deadline_;
  Phase phase_ = Phase::kWaiting;
  std::optional<pid_t> pid_;
  Fd pidfd_;
  Fd report_;
};

}  // namespace atl::agent
