// Lifetime: when a sandbox ends by itself. Its ttl counts from its creation, or from when it was
// last given one, and only a pause holds it up; its idle ttl counts while nothing runs, from the
// last time it was used. Measured on the steady clock; after a restart of atolld the idle time
// starts anew. Also when a pause has lasted so long that its memory may be given back.
#pragma once

#include <optional>

#include "base/clock.h"
#include "sandbox/channel.h"
#include "sandbox/contexts.h"
#include "sandbox/exec_table.h"
#include "store/catalog.h"

namespace atl::sandbox {

class Lifetime {
 public:
  // Borrows the clock, and what makes the sandbox busy.
  Lifetime(const store::SandboxRow& row, const Clock& clock, const ExecTable& execs,
           const Channels& channels, const Contexts& contexts);

  // Somebody uses it: its idle time starts anew.
  void touch() { touched_ = clock_.steady_now(); }

  // The sandbox was given other ttls; what is the same goes on counting.
  void change(const store::SandboxRow& before, const store::SandboxRow& after);

  // From now until go_on() no time passes. A ttl that was over before begins anew then, with that
  // of `row`.
  void hold();
  void go_on(const store::SandboxRow& row);

  // When its time is up, as things are now; nothing if it has neither ttl, or is held.
  std::optional<SteadyTime> deadline() const;
  // The earliest that deadline() can be at any later moment.
  std::optional<SteadyTime> earliest_deadline() const;
  // When its memory may be given back; nothing if it is not held, or that is not allowed.
  std::optional<SteadyTime> memory_end() const;
  // The deadline as a time to show.
  std::optional<WallTime> ends_at() const;

 private:
  bool is_busy() const {
    return execs_.running() > 0 || channels_.size() > 0 || contexts_.are_busy();
  }
  std::optional<SteadyTime> first_end(SteadyTime idle_since) const;
  SteadyTime now() const { return held_since_.value_or(clock_.steady_now()); }

  const Clock& clock_;
  const ExecTable& execs_;
  const Channels& channels_;
  const Contexts& contexts_;
  std::chrono::milliseconds idle_ttl_;  // 0: none
  std::optional<SteadyTime> ttl_end_;
  SteadyTime touched_;
  std::optional<SteadyTime> held_since_;
  std::optional<SteadyTime> paused_from_;       // the same, but over restarts of atolld
  std::chrono::milliseconds files_only_after_;  // 0: never
};

}  // namespace atl::sandbox
