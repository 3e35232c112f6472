// Greets the agent of an isolate that has no user yet, and has it start a program that waits.
#pragma once

#include <optional>

#include "sandbox/sandbox.h"
#include "sandbox/zygotes.h"

namespace atl::sandbox {

// What a waiting program is a copy of, if not started. One whose program comes at once gains
// nothing by a rehearsal; kOften is also for one that was started, behind a kernel of its own,
// where all that is done for the first time is slow.
struct CopyOf {
  Imprint imprint;
  // kOnly: nothing waits afterwards, for it is to be laid down (laid_down.h).
  enum class Rehearsal : unsigned char { kAhead, kNone, kOften, kOnly } rehearsal =
      Rehearsal::kAhead;
  int memory = -1;  // that the machine begins with; stays the caller's
};

// Returns when the program has said that it is ready; without one, when the agent is greeted.
Task<Result<WarmAgent>> warm_agent(Services& services, SandboxId id, isolate::Nonce nonce,
                                   std::optional<agent::Start> program, CopyOf copy);

}  // namespace atl::sandbox
