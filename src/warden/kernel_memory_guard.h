// KernelMemoryGuard: looks at the host for the watch and does what that decides. A sandbox that is
// ended for it gets a note in its record, so that atolld can say why (linux::ResourceUsage).
//
// Belongs to the warden's loop and never waits. What it has stopped goes on when it is destroyed;
// what a warden that was killed had stopped, when the next one starts.
#pragma once

#include <map>

#include "warden/freezer.h"
#include "warden/host.h"
#include "warden/kernel_memory_watch.h"

namespace atl::warden {

// 0: chosen by the memory of the host.
uint64_t watched_growth(uint64_t asked_bytes);

// What /proc/meminfo says, and what the groups of this Atoll's sandboxes are charged for.
Result<KernelMemory> read_kernel_memory(const Host& host);

// Whether the isolate was ended for the kernel memory that it made grow.
bool was_ended_for_kernel_memory(const Host& host, const SandboxId& id);

class KernelMemoryGuard {
 public:
  KernelMemoryGuard(const Host& host, uint64_t growth_bytes) : host_(host), watch_(growth_bytes) {}

  // For poll(2): until the next look is due.
  int wait_ms() const;
  // Does nothing before.
  void look_if_due();

 private:
  std::vector<Suspect> read_suspects() const;
  void carry_out(const WatchOrder& order, const KernelMemory& memory);
  void end(const SandboxId& id, const KernelMemory& memory);

  const Host& host_;
  KernelMemoryWatch watch_;
  SteadyTime due_ = {};
  bool is_blind_ = false;
  std::map<SandboxId, ShortStop> stopped_;
};

}  // namespace atl::warden
