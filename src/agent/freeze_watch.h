// Tells when the programs of the sandbox were stopped and go on: by cgroup.events of the group that
// holds them all and that the warden freezes. The agent is in another and runs on, so nobody has to
// tell it, and what was frozen counts for nothing whoever dies meanwhile. Without such a file (in
// gVisor, which is stopped as a whole) there is nothing to notice.
#pragma once

#include <optional>

#include "agent/poll_set.h"
#include "base/clock.h"
#include "base/fd.h"

namespace atl::agent {

class FreezeWatch {
 public:
  explicit FreezeWatch(Fd events) : events_(std::move(events)) {}

  void add_watches(PollSet& polls) const;
  // The group was frozen or goes on; gives since when it had been, once it does.
  std::optional<SteadyTime> noticed(SteadyTime now);
  // Nothing: the programs run.
  std::optional<SteadyTime> frozen_since() const { return since_; }

 private:
  Fd events_;
  std::optional<SteadyTime> since_;
};

}  // namespace atl::agent
