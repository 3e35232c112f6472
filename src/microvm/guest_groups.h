// The groups of a guest, which carry the sandbox's limits as those of the host do for a jail: the
// agent in one of its own, all programs in leaves of the other.
#pragma once

#include <array>

#include "agent/birth_record.h"
#include "base/fd.h"
#include "base/result.h"

namespace atl::microvm {

struct GuestGroups {
  Fd agent;
  Fd run;
  // kMemoryEventsFd and on.
  std::array<Fd, 4> counters;
};

// Mounts the tree at `path` and makes them.
Result<GuestGroups> make_guest_groups(const std::string& path, const agent::GuestLimits& limits);

}  // namespace atl::microvm
