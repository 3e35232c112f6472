#include "cli/doctor/namespaces.h"

#include <sched.h>

#include <fmt/format.h>

#include "cli/doctor/trial.h"

namespace atl::cli {
namespace {

struct Kind {
  const char* name;
  uint64_t flag;
  const char* limit;  // user.max_<limit>_namespaces
};

// The jail is cloned with the time namespace too, so it is as required as the others.
constexpr Kind kKinds[] = {
    {"namespace.user", CLONE_NEWUSER, "user"},       {"namespace.mount", CLONE_NEWNS, "mnt"},
    {"namespace.pid", CLONE_NEWPID, "pid"},          {"namespace.net", CLONE_NEWNET, "net"},
    {"namespace.ipc", CLONE_NEWIPC, "ipc"},          {"namespace.uts", CLONE_NEWUTS, "uts"},
    {"namespace.cgroup", CLONE_NEWCGROUP, "cgroup"}, {"namespace.time", CLONE_NEWTIME, "time"},
};

std::string remedy_for(const Kind& kind, int number) {
  if (number == ENOSPC || number == EUSERS)
    return fmt::format("sysctl -w user.max_{}_namespaces=65536", kind.limit);
  if (number == EPERM || number == EACCES)
    return "something around this process forbids it: run Atoll directly on the host as root";
  return kOtherKernel;
}

// Here the place itself is what is tried.
Finding try_kind(const Kind& kind) {
  TrialReading reading = {
      .name = kind.name, .kind = FindingClass::kRequired, .found = "", .remedy = ""};
  Result<void> trial =
      run_trial({.namespaces = CLONE_NEWUSER | kind.flag}, [] { return Result<void>(); });
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
        .name = kind.name, .kind = FindingClass::kRequired, .found = "", .remedy = ""};
    findings.push_back(
        possible ? try_kind(kind)
                 : judge(reading, Error(Code::kUnavailable, "not tried: no user namespace")));
  }
  return findings;
}

}  // namespace atl::cli
