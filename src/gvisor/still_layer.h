// StillLayer: whoever asks inside for still files (agent/still_files.h) gets them from the keeper,
// which has the sentry write down what is in the layer while nothing runs. From then on they are
// still, whatever is written inside. One asker at a time; another waits.
#pragma once

#include <poll.h>

#include <functional>
#include <vector>

#include "base/fd.h"
#include "microvm/relay_frame.h"

namespace atl::gvisor {

class StillLayer {
 public:
  // `tell` is how the keeper is told kKeepFiles and kFilesTaken.
  explicit StillLayer(std::function<void(microvm::RelayKind)> tell) : tell_(std::move(tell)) {}

  void begin(Fd asker);
  // The keeper's answer.
  void take_answer(int system_errno);

  void add_watches(std::vector<pollfd>& polls) const;
  // After a poll.
  void look();

 private:
  void end();

  std::function<void(microvm::RelayKind)> tell_;
  bool asked_ = false;  // the keeper, which has not been told kFilesTaken
  bool kept_ = false;   // and has answered
  Fd asker_, next_;
};

}  // namespace atl::gvisor
