// WallTrials: what this host can do for walls that depend on its processor and kernel. A device or
// a version number says nothing, so one isolate is launched as any other and behind the same walls,
// and its agent has to answer in time. Whatever becomes of it, it is removed.
//
// Machines: whether they have the host's processor (KVM); some devices cannot boot a kernel, and
// hang. Until it is known, and if it fails, machines are emulated.
// gVisor: how its sentry takes hold of programs' system calls, by seccomp (systrap) or, where that
// does not run, by ptrace. Until it is known by the first that is allowed; if none runs, the wall
// is not offered, and it is tried again after a while.
//
// What was found holds for that image of what runs them, in the life of this process. Never tried
// while a request waits. One thread.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "sandbox/sandbox.h"
#include "sandbox/templates.h"

namespace atl::sandbox {

class WallTrials {
 public:
  struct Plan {
    // What one has to answer. For machines none: KVM is not tried, and they are emulated.
    std::chrono::seconds machine_time;
    std::chrono::seconds sentry_time{30};
    // The first that runs is taken; never none.
    std::vector<isolate::Platform> platforms{isolate::Platform::kSystrap,
                                             isolate::Platform::kPtrace};
  };
  WallTrials(Services& services, Templates& templates, Plan plan);

  // Tries the images that there are now, if they were not; the templates know what was found.
  Task<void> try_newest();
  // That, again and again.
  Task<void> run();

 private:
  struct Trial {
    isolate::Monitor monitor;
    std::chrono::seconds time;
    std::string_view who;
  };
  Task<void> try_machine();
  Task<void> try_sentry();
  Task<Result<void>> launch(Trial trial);
  Task<Result<void>> await_agent(SandboxId id, isolate::Nonce nonce, Trial trial);
  // False when nothing could be launched at all, which says nothing about the wall.
  bool is_final(const Result<void>& answered, const Trial& trial, SteadyTime& not_before);

  Services& services_;
  Templates& templates_;
  Plan plan_;
  SteadyTime machine_not_before_ = {};
  std::optional<Digest> sentry_last_;  // that was tried, and not again before:
  SteadyTime sentry_not_before_ = {};
};

}  // namespace atl::sandbox
