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
  enum class Rehearsal : unsigned char { kAhead, kNone, kOften } rehearsal = Rehearsal::kAhead;
  // A machine begins with this memory, which stays the caller's, or with what was lent to it
  // before, and this has waited there.
  int memory = -1;
  std::optional<WaitingProgram> waited = {};
};

// Brings a machine the memory that it is to begin with.
Task<Result<void>> lend(isolate::AgentLink& link, int memory);

// Returns when the program has said that it is ready; without one, when the agent is greeted.
Task<Result<WarmAgent>> warm_agent(Services& services, SandboxId id, isolate::Nonce nonce,
                                   std::optional<agent::Start> program, CopyOf copy);
// The same over a stream, for as long as that lasts.
Task<Result<WarmAgent>> warm_agent(std::shared_ptr<isolate::AgentLink> link, isolate::Nonce nonce,
                                   std::optional<agent::Start> program, CopyOf copy);

}  // namespace atl::sandbox
