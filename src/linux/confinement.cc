#include "linux/confinement.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "linux/capabilities.h"
#include "linux/resource_limits.h"
#include "linux/signals.h"

namespace atl::linux {
namespace {

// The kernel's own default: enough for programs that lock keys into memory. Locked pages count
// against the memory limit like all others.
constexpr rlim_t kLockedBytes = 8 << 20;
constexpr rlim_t kMessageQueueBytes = 819'200;  // the kernel's default too
constexpr rlim_t kPendingSignalsPerProcess = 16;

// What the agent needs to start programs as any user inside and to keep them off its own memory.
constexpr uint64_t kAgentCapabilities =
    capability_mask({CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_SETUID, CAP_SETGID,
                     CAP_KILL, CAP_NET_BIND_SERVICE, CAP_SYS_CHROOT, CAP_SETPCAP, CAP_SYS_PTRACE});

Result<void> set_limits(unsigned pids) {
  // No real-time priority and none above the ordinary one: both would take from other sandboxes.
  for (auto resource : {RLIMIT_RTPRIO, RLIMIT_NICE}) ATOLL_TRY_VOID(lower_limit(resource, 0));
  ATOLL_TRY_VOID(lower_limit(RLIMIT_MEMLOCK, kLockedBytes));
  ATOLL_TRY_VOID(lower_limit(RLIMIT_MSGQUEUE, kMessageQueueBytes));
  ATOLL_TRY_VOID(lower_limit(RLIMIT_SIGPENDING, kPendingSignalsPerProcess * pids));
  // 0 would not stop a core_pattern that is a pipe.
  return set_limit(RLIMIT_CORE, 1, 1);
}

}  // namespace

Result<void> confine_agent(unsigned pids) {
  setsid();  // fails only for a process that leads a group already, which does no harm
  ATOLL_TRY_VOID(set_limits(pids));
  ATOLL_TRY_VOID(reset_signals());
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Error::system("set no_new_privs");
  ATOLL_TRY_VOID(limit_bounding_set(kAgentCapabilities));
  // execve as uid 0 gives back the bounding set, so that is what makes it last.
  return set_capabilities({.effective = kAgentCapabilities, .permitted = kAgentCapabilities});
}

}  // namespace atl::linux
