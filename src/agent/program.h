// The processes of one exec: the main one, held by pidfd until it is reaped, and all others in its
// leaf. Knows when their time is over, who sent which signal and what the kernel counted, so that
// it can say who ended the main process and which limits were hit.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <optional>

#include "agent/channel_protocol.h"
#include "agent/counters.h"
#include "agent/leaf.h"
#include "agent/protocol.h"
#include "base/clock.h"
#include "base/fd.h"

namespace atl::agent {

// What the kernel tells whoever waits for the main process.
struct Death {
  int wait_status = 0;
  rusage usage = {};
  uint64_t read_bytes = 0;
  uint64_t written_bytes = 0;
};

class Program {
 public:
  // `before`: what had been counted before it started.
  Program(Leaf leaf, const Start& start, const Counts& before);

  // The wall time starts now, that of a controlled program when it begins.
  void launched(pid_t pid, Fd pidfd);
  // From now on it counts what is used and how long it takes.
  void begin(const Beginning& begins, const Counts& before);
  // Before the main process is waited for: nobody knows its bytes later.
  void read_storage_bytes(Death& death) const;
  // Fills in how the main process ended, what was used and which limits were hit. Kills the rest
  // after a memory kill.
  // Gives how long it was stopped since its clocks were started.
  SteadyTime::duration reaped(const Death& death, Counters& counters, Exit& exit);
  // Not ours to watch any more; what still runs is left alone.
  void let_go();

  // The main process, until it is reaped.
  std::optional<pid_t> pid() const { return pid_; }
  // The same, for ever.
  uint32_t first_pid() const { return first_pid_; }

  // From the daemon: SIGKILL goes to every process, any other signal to the main one.
  void signal(uint8_t signal_number);
  // A limit ends every process; the first cause is the one that is told.
  void end(Cause cause);
  void kill();
  Joining joining() const { return killed_ ? Joining::kRefused : Joining::kAllowed; }

  // When to check the time.
  std::optional<SteadyTime> deadline() const;
  // Ends every process when the wall time or the cpu time is over.
  void check_deadline(SteadyTime now);

  // It was stopped from `since` until `now`, which does not count: what is left of its time is
  // left.
  void put_off(SteadyTime since, SteadyTime now);

  const Leaf& leaf() const { return leaf_; }

 private:
  Cause cause_of(int signal_number, bool memory_kill) const;
  void check_cpu_time(SteadyTime now);
  void start_clocks();
  // What the programs of its leaf used since it began.
  uint64_t used_us() const;
  // A machine charges the time in which it stood still to whatever ran: what is more than its
  // processors had until then was never used.
  void forgive_cpu_time(SteadyTime since, SteadyTime now);
  bool hit_by_memory_kill(const Counts& now, bool leaf_counts) const;
  void read_cpu_times(const rusage& usage, Exit& exit) const;
  void read_peak_memory(const rusage& usage, const Counters& counters, Exit& exit) const;

  Leaf leaf_;
  uint32_t timeout_ms_;
  uint64_t cpu_limit_us_;
  uint64_t user_us_before_ = 0, system_us_before_ = 0;  // used before it began
  uint64_t forgiven_us_ = 0;
  uint64_t seen_us_ = 0;  // used, when that was last looked at
  SteadyTime seen_at_;
  bool interrupts_group_;
  Counts before_;
  std::optional<pid_t> pid_;
  uint32_t first_pid_ = 0;
  Fd pidfd_;
  Fd storage_bytes_;  // /proc/<pid>/io
  std::optional<SteadyTime> deadline_;
  std::optional<SteadyTime> cpu_check_at_;
  SteadyTime started_at_;
  SteadyTime::duration frozen_{0};
  std::optional<Cause> ended_for_;
  bool killed_ = false;
  uint64_t client_signals_ = 0;  // bit n-1: the daemon sent signal n
};

}  // namespace atl::agent
