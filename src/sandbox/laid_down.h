// Machines that were laid down: warmed, saved and ended while a program waited in them, so that
// others begin with their memory, which all of them share until they write to it, and with that
// program. Their keeper lives on (agent/still_files.h). What is the same in all that begin there is
// what zygotes share too, so one is used for as long.
#pragma once

#include <memory>

#include "base/fd.h"
#include "base/snapshot_id.h"
#include "sandbox/warm_agent.h"
#include "sandbox/warm_isolate.h"

namespace atl::sandbox {

struct LaidDown {
  WarmIsolate isolate;  // without a stream
  Fd memory;            // sealed
  SnapshotId disk;      // of its layer; no row knows it, so the next start would remove it
  SteadyTime made_at;
  uint64_t begun = 0;  // with it, until now

  bool lends_to(const Basis& basis, const isolate::WallLimits& limits) const;
  bool is_worn(SteadyTime now) const;
  // What it takes of the host's memory.
  uint64_t memory_bytes() const;
};

// Of an isolate of Purpose::kLender in which a program waits. Its stream ends with it. After an
// error it is still to be removed.
Task<Result<LaidDown>> lay_down(Services& services, WarmIsolate isolate);

// Launches another that begins there, greets it and takes up what waits; after an error there is
// none.
Task<Result<WarmAgent>> begin_with(Services& services, std::shared_ptr<LaidDown> lender,
                                   isolate::LaunchSpec spec, CopyOf::Rehearsal rehearsal);

// The same in two steps. The isolate has an id and a nonce, and is launched; all of it is ready for
// the second step, which is all that whoever takes it has to wait for. After an error of the first
// there is none; after one of the second it is still to be removed.
Task<Result<WarmIsolate>> poise(Services& services, std::shared_ptr<LaidDown> lender,
                                WarmIsolate isolate);
Task<Result<WarmAgent>> begin_poised(Services& services, WarmIsolate& isolate);

Task<void> discard(Services& services, std::shared_ptr<LaidDown> laid_down);

}  // namespace atl::sandbox
