#include "warden/sandbox_network.h"

#include <sched.h>

#include <charconv>

#include "base/file.h"
#include "linux/pidfd.h"
#include "warden/inventory.h"

namespace atl::warden {
namespace {

Result<pid_t> first_member(const std::string& group) {
  ATOLL_TRY(std::string text, read_file(group + "/cgroup.procs"));
  pid_t pid = 0;
  std::from_chars(text.data(), text.data() + text.size(), pid);
  if (pid <= 0) return Error::from_errno("the isolate has no agent", ESRCH);
  return pid;
}

// Who is in the group after its pidfd was opened was there before, so the number meant the same.
Result<Fd> open_agent(const Host& host, const SandboxId& id) {
  std::string group = host.group_path(host.cgroups.v2, id) + "/agent";
  ATOLL_TRY(pid_t pid, first_member(group));
  ATOLL_TRY(Fd agent, linux::open_pidfd(pid));
  ATOLL_TRY(pid_t again, first_member(group));
  if (pid != again || linux::has_ended(agent.get()))
    return Error::from_errno("the agent is gone", ESRCH);
  return agent;
}

}  // namespace

Result<linux::NetworkSockets> reopen_sockets(const Host& host, const SandboxId& id) {
  ATOLL_TRY(auto record, lock_record(host, id));
  if (!record) return Error::from_errno("find the isolate", ENOENT);
  ATOLL_TRY(Fd agent, open_agent(host, id));
  // The user namespace too: it gives the capabilities over the other.
  if (setns(agent.get(), CLONE_NEWUSER | CLONE_NEWNET) != 0)
    return Error::system("enter the isolate's network");
  return linux::make_network_sockets(kSandboxNetwork);
}

}  // namespace atl::warden
