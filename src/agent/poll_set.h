// What one turn of the agent's loop waits for. Built anew each turn from the state of the objects,
// so no registration can outlive or contradict what it stands for.
#pragma once

#include <poll.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace atl::agent {

enum class Source : uint8_t {
  kListener,
  kConnection,
  kChildren,  // SIGCHLD
  kReport,    // an exec's start report
  kStdout,
  kStderr,
  kSpeech,
  kStdin,
  kLeftPipe,  // of an exec that is over
  kLeftLeaf,
  kOomNotice,
  kFrozen,   // the programs were stopped, or go on
  kSpawner,  // its end
  kSudoListener,
  kSudoCall,
  kChannel,
  kRebirth,  // of the machine: see Agent::be_reborn()
};

struct Watch {
  Source source;
  uint32_t exec = 0;  // of kSudoCall: the number of the call; of kChannel: the channel's
};

class PollSet {
 public:
  void clear();
  void add(int fd, short events, Watch watch);
  // Wakes at `deadline` at the latest.
  Result<void> wait(std::optional<SteadyTime> deadline);

  size_t size() const { return polls_.size(); }
  short ready(size_t index) const { return polls_[index].revents; }
  Watch watch(size_t index) const { return watches_[index]; }

 private:
  std::vector<pollfd> polls_;
  std::vector<Watch> watches_;
};

}  // namespace atl::agent
