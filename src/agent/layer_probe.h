// Finds out whether the sandbox's layer is full, by writing a little to a file without a name. The
// kernel has no cheaper answer: a quota of one layer is not in statfs.
//
// In a process of its own, because a full file system first tries to make room, which takes as long
// as a commit. One at a time: execs that end meanwhile share the next.
#pragma once

#include <sys/types.h>

#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace atl::agent {

class LayerProbe {
 public:
  // `directory` is on the layer.
  explicit LayerProbe(Fd directory) : directory_(std::move(directory)) {}

  void ask(uint32_t exec);

  // The process that is at it.
  std::optional<pid_t> pid() const { return pid_; }
  struct Answer {
    bool full;
    std::vector<uint32_t> execs;  // who asked
  };
  Answer ended(int wait_status);

  std::optional<SteadyTime> deadline() const { return deadline_; }
  // Ends a probe that takes too long, which then means "not full"; starts one that could not be.
  void check_deadline(SteadyTime now);

 private:
  void begin();

  Fd directory_;
  std::optional<pid_t> pid_;
  Fd pidfd_;
  std::optional<SteadyTime> deadline_;
  std::vector<uint32_t> asking_;   // of the running probe
  std::vector<uint32_t> waiting_;  // for the next
};

// In the calling process; may block.
bool is_full(int directory);

}  // namespace atl::agent
