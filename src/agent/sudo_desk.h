// Where programs inside ask for others to be started as another user: the listener that `sudo`
// connects to, and its clients. A command runs in the leaf of the exec that asked, so that the
// exec's limits, its kill and its verdict cover it; it gets the walls of an exec of that user.
// Whoever is inside may ask: it gives no power outside.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "agent/exec_table.h"
#include "agent/poll_set.h"
#include "agent/sudo_call.h"
#include "base/clock.h"
#include "base/fd.h"

namespace atl::agent {

class SudoDesk {
 public:
  // Without a listener nobody comes.
  explicit SudoDesk(Fd listener) : listener_(std::move(listener)) {}

  void add_watches(PollSet& polls) const;
  void handle(Watch watch, ExecTable& execs);
  void reaped(const ReapedChild& child);
  std::optional<SteadyTime> next_deadline() const;
  void check_deadlines();
  bool is_empty() const { return calls_.empty(); }

 private:
  void accept_some();
  void receive(uint32_t number, ExecTable& execs);
  bool has_room() const;
  size_t count(SudoCall::Phase phase) const;

  Fd listener_;
  std::map<uint32_t, SudoCall> calls_;  // by age
  uint32_t last_number_ = 0;
};

}  // namespace atl::agent
