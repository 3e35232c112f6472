// The birth probe: before the sandbox may be used, the agent starts it as it starts an exec: same
// spawner, same leaf, same user, same steps, but for the execve, which would only cost time: every
// fact is read from the kernel when all walls stand. It tells the warden what it sees from inside,
// waits until the warden has looked at it from outside, and ends. Of the two views the warden makes
// the receipt.
//
// Its standard input is a SEQPACKET socket to the warden. kProbeHere goes out, so that the warden
// looks while the probe does; then kProbeFacts and the facts of linux/process_facts.h, or
// kProbeFailed and why there is no probe; one byte comes back.
#pragma once

#include <linux/filter.h>

#include <span>

#include "agent/process_start.h"
#include "base/fd.h"
#include "base/result.h"
#include "linux/process_facts.h"

namespace atl::agent {

class Launcher;
class Leaf;
struct Launched;

// In the probe, behind all walls and with the standard descriptors only: does all of it. `filter`
// is the one that it was given, `more` what it tells besides.
Result<void> run_probe(std::span<const sock_filter> filter, const linux::Facts& more = {});

// In the agent: starts it and returns when it stands behind all walls. A failure has been told to
// the warden. `probe` is one of the three.
Result<Launched> start_probe(Launcher& launcher, const Leaf& leaf, Fd socket,
                             Becomes probe = Becomes::kProbe);

}  // namespace atl::agent
