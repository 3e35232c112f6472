// Attempt: one run of a victim, and what changed on the host meanwhile. A host has other users: its
// kernel's log, mounts and clock change, and a busy neighbour misses a beat, without any victim. So
// a victim that nothing else speaks against runs once more, and is charged if the host changes
// again. The victim's own end counts in both runs: that is never tried again.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/selftest/judgement.h"

namespace atl::cli::selftest {

struct Attempt {
  Judgement judgement;  // of its own end, and of the canaries
  std::vector<std::string> host_changes = {};
};

Result<Judgement> judge_attempts(const std::function<Result<Attempt>()>& attempt);

}  // namespace atl::cli::selftest
