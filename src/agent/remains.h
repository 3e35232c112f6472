// What an exec leaves behind when it is over: a leaf in which background children may live on, and
// pipes that they may still write to. Their output is read and thrown away, so that they neither
// block nor die of SIGPIPE; the leaf is removed when the last of them is gone.
#pragma once

#include <array>
#include <optional>

#include "agent/leaf.h"
#include "agent/poll_set.h"
#include "base/clock.h"
#include "base/fd.h"

namespace atl::agent {

class Remains {
 public:
  Remains(Leaf leaf, Fd stdout_pipe, Fd stderr_pipe, Joining joining);

  Joining joining() const { return joining_; }
  const Leaf& leaf() const { return leaf_; }

  // Nothing is left.
  bool gone() const { return removed_ && !pipes_[0] && !pipes_[1]; }

  void add_watches(PollSet& polls) const;
  void discard_output(int null_device);
  void try_to_remove(SteadyTime now);
  // A failure means that all are gone already.
  void kill() {
    joining_ = Joining::kRefused;
    (void)leaf_.kill();
  }
  // When to try again without an event.
  std::optional<SteadyTime> retry_at() const { return retry_at_; }

 private:
  Leaf leaf_;
  std::array<Fd, 2> pipes_;
  Fd events_;
  Joining joining_;
  bool removed_ = false;
  std::optional<SteadyTime> retry_at_;
};

}  // namespace atl::agent
