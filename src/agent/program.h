// The processes of one exec: the main one, held by pidfd until it is reaped, and all others in its
// leaf. Knows when their time is over and who sent which signal, so that it can say who ended the
// main process.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <optional>

#include "agent/leaf.h"
#include "agent/protocol.h"
#include "base/clock.h"
#include "base/fd.h"

namespace atl::agent {

class Program {
 public:
  Program(Leaf leaf, uint32_t timeout_ms) : leaf_(leaf), timeout_ms_(timeout_ms) {}

  // The wall time starts now.
  void launched(pid_t pid, Fd pidfd);
  // Fills in how the main process ended and what it used.
  void reaped(int wait_status, const rusage& usage, Exit& exit);
  // Not ours to watch any more; what still runs is left alone.
  void let_go();

  // The main process, until it is reaped.
  std::optional<pid_t> pid() const { return pid_; }
  // The same, for ever.
  uint32_t first_pid() const { return first_pid_; }

  // From the daemon: SIGKILL goes to every process, any other signal to the main one.
  void signal(uint8_t signal_number);
  void kill() const;

  std::optional<SteadyTime> deadline() const { return deadline_; }
  // Kills every process when the wall time is over.
  void check_deadline(SteadyTime now);

  const Leaf& leaf() const { return leaf_; }

 private:
  Cause cause_of(int signal_number) const;

  Leaf leaf_;
  uint32_t timeout_ms_;
  std::optional<pid_t> pid_;
  uint32_t first_pid_ = 0;
  Fd pidfd_;
  std::optional<SteadyTime> deadline_;
  bool timed_out_ = false;
  uint64_t client_signals_ = 0;  // bit n-1: the daemon sent signal n
};

}  // namespace atl::agent
