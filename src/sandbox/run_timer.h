// RunTimer: when an interpreter is interrupted, because the time of its run is up or a client asks,
// and when it is killed, because the interrupt did not help or it does not start.
//
// An interpreter drops a SIGINT that finds no run begun, and a shell drops the line that it is
// reading. So no interrupt is sent before the interpreter has said that the run has begun. The time
// until the kill counts from the SIGINT; without a begin it is longer, because a busy host is no
// reason to lose the state.
//
// Holds no clock: its owner tells the time, sends what is due and says whether it was sent.
#pragma once

#include <optional>

#include "base/clock.h"

namespace atl::sandbox {

class RunTimer {
 public:
  void await_interpreter(SteadyTime now);
  void interpreter_ready() { kill_at_.reset(); }

  // `is_told`: the interpreter says when a run begins; otherwise it has begun now.
  void start(SteadyTime deadline, bool is_told);
  bool is_running() const { return is_running_; }
  // Once more: an interrupt that was sent before may have been lost and is due again.
  void set_begun(SteadyTime now);
  // Interrupts the run as soon as it has begun.
  void interrupt() { wants_interrupt_ = is_running_; }
  void end();
  // Whether the deadline of the run has passed.
  bool timed_out() const { return timed_out_; }

  void kill(SteadyTime now);

  // SIGINT or SIGKILL, or nothing yet; set_sent() must follow.
  std::optional<int> due(SteadyTime now);
  // A signal that could not be sent is due again a moment later.
  void set_sent(int signal_number, bool was_sent, SteadyTime now);
  // When due() may have something; max() if only another call can change that.
  SteadyTime next() const;
  // The sandbox stood still for so long.
  void shift(SteadyTime::duration pause);

 private:
  bool is_running_ = false, has_begun_ = false, timed_out_ = false;
  bool wants_interrupt_ = false, was_interrupted_ = false, is_killing_ = false;
  std::optional<SteadyTime> deadline_, kill_at_;
  SteadyTime interrupt_at_ = SteadyTime::min();
};

}  // namespace atl::sandbox
