// What a keeper does whatever it keeps, QEMU or gVisor's sentry: it starts programs in its jail,
// and joins the one that the agent is behind with atolld until either is gone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agent/exec.h"
#include "agent/launcher.h"
#include "agent/leaf.h"
#include "base/fd.h"
#include "base/result.h"
#include "microvm/rebirth.h"
#include "microvm/relay.h"

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
  // `port` is our end of the stream behind which the agent is, `leaf` what it runs in.
  KeptProgram(agent::Launched launched, Fd port, agent::Leaf leaf);

  // Before it is kept: what its files are kept by, if anything does.
  void offer_files(Relay::Files files) { files_ = std::move(files); }
  // And what makes it stand still in a way that it does not notice, so that it has nothing to make
  // up for when it goes on. Without: it is frozen and no more.
  struct Standstill {
    std::function<Result<void>()> begin;
    std::function<Result<void>()> end;
  };
  void offer_standstill(Standstill standstill) { standstill_ = std::move(standstill); }

  // Until it ends; gives why. Whoever connects to the listener is joined with the agent, the newest
  // wins. `ready` is called once, when the other side is up. Connections that come through the
  // passage are made in this network; a guest that breaks the passage has none from then on.
  // While nothing runs behind it, it is frozen: an idle one would use the processor.
  // No error: it asks to be laid down, and runs on.
  Result<void> keep(int listener, const std::function<void()>& ready,
                    LyingDown lying_down = LyingDown::kRefused);
  // Of one that begins with the memory of another; `first` is who connected already. What is not
  // reborn in time ends.
  Result<void> keep_reborn(int listener, const Rebirth& rebirth, Fd first);
  // Until it is gone.
  Result<void> end();

 private:
  Result<void> pass_on(Relay relay, int listener, const std::function<void()>& ready);
  void rest();
  Result<void> go_on(Relay& relay);

  agent::Launched launched_;  // its control socket is the port of the passage
  Fd port_;
  agent::Leaf leaf_;
  Relay::Files files_;
  Standstill standstill_;
  bool rests_ = false;
  bool may_rest_ = true;
};

}  // namespace atl::microvm
