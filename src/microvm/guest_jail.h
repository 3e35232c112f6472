// The child side of a guest's start: the process that becomes the agent. The same root, rights and
// descriptors as a jail's; no user namespace, for the whole kernel is the sandbox's own.
#pragma once

#include "agent/birth_record.h"
#include "microvm/guest_groups.h"

namespace atl::microvm {

struct GuestPlan {
  agent::BirthRecord birth;
  int program;   // that is executed
  int listener;  // of the agent
  int rest;      // where the agent tells that nothing runs
  const GuestGroups& groups;
};

// In namespaces of its own, with everything mounted that guest.cc mounts.
[[noreturn]] void become_agent(const GuestPlan& plan);

}  // namespace atl::microvm
