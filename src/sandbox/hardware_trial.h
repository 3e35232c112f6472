// HardwareTrial: whether machines can have the host's processor (KVM). That a device is there says
// nothing, for some cannot boot a kernel: so one machine is booted with it, as any other and behind
// the same walls, and has to answer in time. Whatever becomes of it, it is removed.
//
// Tried once for each image of what runs machines, in the life of this process; never while a
// request waits. Until it is known, and if it fails, machines are emulated. One thread.
#pragma once

#include <chrono>
#include <optional>

#include "sandbox/sandbox.h"
#include "sandbox/templates.h"

namespace atl::sandbox {

class HardwareTrial {
 public:
  // `time` is what the machine has to answer; none: it is not tried, and machines are emulated.
  HardwareTrial(Services& services, Templates& templates, std::chrono::seconds time)
      : services_(services), templates_(templates), time_(time) {}

  // Tries the image that there is now, if it was not; the templates know what was found.
  Task<void> try_newest();
  // That, again and again.
  Task<void> run();

 private:
  Task<Result<void>> boot(Digest image);
  Task<Result<void>> await_agent(SandboxId id, isolate::Nonce nonce);
  void find(Digest image, const Result<void>& booted);

  Services& services_;
  Templates& templates_;
  std::chrono::seconds time_;
  SteadyTime not_before_ = {};
};

}  // namespace atl::sandbox
