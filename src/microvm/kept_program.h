// What a keeper does whatever it keeps, QEMU or gVisor's sentry: it starts programs in its jail,
// and joins the one that the agent is behind with atolld until either is gone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agent/exec.h"
#include "agent/launcher.h"
#include "base/fd.h"
#include "base/result.h"

namespace atl::microvm {

inline constexpr uid_t kKeptUser = 1000;

// Starts what the keeper needs, each in a leaf and behind the walls of a program of the sandbox.
class KeptPrograms {
 public:
  KeptPrograms(agent::Launcher& launcher, int cgroup) : launcher_(launcher), cgroup_(cgroup) {}

  // With the passage as its control socket.
  Result<agent::Launched> start(uint32_t number, std::vector<std::string> words, int input,
                                agent::Becomes becomes = agent::Becomes::kProgram);
  // Until it has ended well.
  Result<void> run(uint32_t number, std::vector<std::string> words);

 private:
  agent::Launcher& launcher_;
  int cgroup_;
};

class KeptProgram {
 public:
  // `port` is our end of the stream behind which the agent is.
  KeptProgram(agent::Launched launched, Fd port);

  // Until it ends; gives why. Whoever connects to the listener is joined with the agent, the newest
  // wins. `ready` is called once, when the other side is up. Connections that come through the
  // passage are made in this network; a guest that breaks the passage has none from then on.
  Result<void> keep(int listener, const std::function<void()>& ready);

 private:
  agent::Launched launched_;
  Fd port_;
};

}  // namespace atl::microvm
