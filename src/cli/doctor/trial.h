// A trial: something done once in a child that then ends, so that the kernel takes back whatever it
// made. What a kernel offers is found out by doing it, because configuration, limits and the walls
// around this process all have their say.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "cli/doctor/finding.h"

namespace atl::cli {

// What the child is born into. With CLONE_NEWUSER it becomes root there: mapped as a jail would be
// when the caller is root, else onto the caller's own id.
struct TrialPlace {
  uint64_t namespaces = 0;  // CLONE_NEW*
  int cgroup = -1;          // directory of a v2 group
  // Done by the caller while the child waits, mapped, to begin.
  std::function<Result<void>(pid_t child)> beside = nullptr;
};

// Single-threaded callers only. A child that does not end in time is killed and is an error;
// kUnavailable says that there was no such place, so that nothing was tried.
Result<void> run_trial(const TrialPlace& place, const std::function<Result<void>()>& work);

// What a failed trial says about the host: a refusal says nothing when the caller is not root.
FindingState state_after(const Result<void>& trial);

struct TrialReading {
  const char* name;
  FindingClass kind;
  const char* found;   // when it worked
  std::string remedy;  // when it did not
};
// The finding that a trial leads to.
Finding judge(const TrialReading& reading, const Result<void>& trial);

}  // namespace atl::cli
