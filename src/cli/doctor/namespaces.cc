#include "cli/doctor/namespaces.h"

#include <sched.h>
#include <unistd.h>

#include <fmt/format.h>

#include "cli/doctor/trial.h"

namespace atl::cli {
namespace {

struct Kind {
  const char* name;
  uint64_t flag;
  const char* limit;  // user.max_<limit>_namespaces
};

constexpr Kind kKinds[] = {
    {"namespace.user", CLONE_NEWUSER, "user"},       {"namespace.mount", CLONE_NEWNS, "mnt"},
    {"namespace.pid", CLONE_NEWPID, "pid"},          {"namespace.net", CLONE_NEWNET, "net"},
    {"namespace.ipc", CLONE_NEWIPC, "ipc"},          {"namespace.uts", CLONE_NEWUTS, "uts"},
    {"namespace.cgroup", CLONE_NEWCGROUP, "cgroup"}, {"namespace.time", CLONE_NEWTIME, "time"},
};

// A kernel without time namespaces can carry a jail. One that has them but refuses them cannot, for
// a launch takes whatever the kernel has.
FindingClass class_of(const Kind& kind, bool refused) {
  bool extra = kind.flag == CLONE_NEWTIME;
  bool taken = refused && access("/proc/self/ns/time", F_OK) == 0;
  return extra && !taken ? FindingClass::kExtra : FindingClass::kRequired;
}

std::string remedy_for(const Kind& kind, int number) {
  if (number == ENOSPC || number == EUSERS)
    return fmt::format("sysctl -w user.max_{}_namespaces=65536", kind.limit);
  if (number == EPERM || number == EACCES)
    return "something around this process forbids it: run Atoll directly on the host as root";
  return kOtherKernel;
}

// Here the place itself is what is tried.
Finding try_kind(const Kind& kind) {
  Result<void> trial =
      run_trial({.namespaces = CLONE_NEWUSER | kind.flag}, [] { return Result<void>(); });
  TrialReading reading = {
      .name = kind.name, .kind = class_of(kind, !trial), .found = "", .remedy = ""};
  if (trial) return judge(reading, trial);
  int number = trial.error().system_errno();
  reading.remedy = remedy_for(kind, number);
  return judge(reading, Error::from_errno("make one", number));
}

}  // namespace

Findings probe_namespaces() {
  Findings findings;
  for (const Kind& kind : kKinds) {
    // The others are made together with a user namespace, so without one they cannot be tried.
    bool possible = findings.empty() || findings.front().state == FindingState::kOk;
    TrialReading reading = {
        .name = kind.name, .kind = class_of(kind, false), .found = "", .remedy = ""};
    findings.push_back(
        possible ? try_kind(kind)
                 : judge(reading, Error(Code::kUnavailable, "not tried: no user namespace")));
  }
  return findings;
}

}  // namespace atl::cli
