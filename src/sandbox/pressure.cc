// Memory that is short: what only waits in the pool is given up, then those that were paused first
// keep their files alone, where their callers allowed that.
//
// It is short when a sandbox could not be promised what it needs, or when the host itself has
// little left, which the sweep looks at for as long as there is somebody to be asked.
#include "base/crash_point.h"
#include "base/log.h"
#include "sandbox/sandboxes.h"

namespace atl::sandbox {

std::shared_ptr<Sandbox> Sandboxes::longest_paused() const {
  std::shared_ptr<Sandbox> first;
  for (const auto& [id, sandbox] : all_) {
    if (!may_release(*sandbox, Need::kPressure)) continue;
    bool is_earlier = !first || sandbox->row().paused_sequence < first->row().paused_sequence;
    if (is_earlier) first = sandbox;
  }
  return first;
}

Task<Result<void>> Sandboxes::release_longest_paused() {
  std::shared_ptr<Sandbox> sandbox = longest_paused();
  SandboxId id = sandbox->id();
  log_info("memory is short", {{"sandbox", id.view()}});
  auto released = co_await release(sandbox, Need::kPressure);
  crash_point("pressure.released");
  if (!released) log_warning("memory stays taken", {{"sandbox", id.view()}, released.error()});
  co_return released;
}

Task<bool> Sandboxes::make_room(Limits limits, Admission::Place place) {
  bool gave_up = co_await pool_.give_up_one();
  if (gave_up) co_return true;
  uint64_t missing_bytes = admission_.missing_memory(limits, place);
  uint64_t held_bytes = 0;
  for (const auto& [id, sandbox] : all_)
    if (may_release(*sandbox, Need::kPressure))
      held_bytes += limits_of(sandbox->row()).memory_bytes();
  // Nobody loses what runs in it for a sandbox that there would still be no room for.
  if (missing_bytes == 0 || held_bytes < missing_bytes) co_return false;
  auto released = co_await release_longest_paused();
  co_return released.ok();
}

Task<void> Sandboxes::relieve() {
  while (longest_paused() && admission_.memory_is_short()) {
    auto released = co_await release_longest_paused();
    if (!released) co_return;
  }
}

}  // namespace atl::sandbox
