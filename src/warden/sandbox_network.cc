#include "warden/sandbox_network.h"

#include <sched.h>

#include "linux/cgroup_member.h"
#include "warden/inventory.h"

namespace atl::warden {
namespace {

Result<RecordLock> enter_network(const Host& host, const SandboxId& id) {
  ATOLL_TRY(auto record, lock_record(host, id));
  if (!record) return Error::from_errno("find the isolate", ENOENT);
  std::string group = host.group_path(host.cgroups.v2, id) + "/agent";
  ATOLL_TRY(Fd agent, linux::open_first_member(group));
  // The user namespace too: it gives the capabilities over the other.
  if (setns(agent.get(), CLONE_NEWUSER | CLONE_NEWNET) != 0)
    return Error::system("enter the isolate's network");
  return std::move(*record);
}

}  // namespace

Result<linux::NetworkSockets> reopen_sockets(const Host& host, const SandboxId& id) {
  ATOLL_TRY([[maybe_unused]] auto record, enter_network(host, id));
  return linux::make_network_sockets(kSandboxNetwork);
}

Result<void> open_ranges(const Host& host, const SandboxId& id, const linux::OpenRanges& open) {
  ATOLL_TRY([[maybe_unused]] auto record, enter_network(host, id));
  return linux::open_ranges(open);
}

}  // namespace atl::warden
