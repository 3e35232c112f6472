// The control groups of one isolate. In the version 2 tree <id>/agent holds process 1 and <id>/run
// all else; limits are set where each controller lives: on <id>/run in version 2, on <id> in a
// version 1 hierarchy, into which only the spawner is ever moved (a move costs an RCU grace period,
// a fork does not).
#pragma once

#include <sys/types.h>

#include "base/fd.h"
#include "base/ids.h"
#include "base/result.h"
#include "linux/group_counters.h"
#include "linux/group_limits.h"
#include "warden/host.h"
#include "warden/protocol.h"

namespace atl::warden {

struct IsolateGroups {
  Fd agent;                    // <id>/agent, for CLONE_INTO_CGROUP
  Fd run;                      // <id>/run as the root of a mount of its own: ".." leads nowhere
  Fd cgroup_namespace;         // rooted at <id>
  linux::CounterFds counters;  // for the agent
};

// <hierarchy>/atoll/<tag> in each hierarchy in use, with controllers handed down.
Result<void> create_parent_groups(const Host& host);

Result<IsolateGroups> create_groups(const Host& host, const SandboxId& id, const Request& limits);

// The group of an isolate that carries the limit of a controller.
struct LimitedGroup {
  Fd group;
  linux::GroupVersion version;
};
Result<LimitedGroup> open_limited_group(const Host& host, const SandboxId& id,
                                        linux::Controller controller);

// Memory last. Stops at the first that the kernel does not keep.
Result<void> set_group_limits(const Host& host, const SandboxId& id, const Request& limits);

// Lets the isolate's root make groups under <id>/run and start processes in them.
Result<void> delegate_groups(const Host& host, const SandboxId& id, uid_t root);

// Moves one process into the version 1 groups; a success where there are none.
Result<void> enter_v1_groups(const Host& host, const SandboxId& id, pid_t pid);

// Ends every process of the isolate and removes its groups; absence is a success.
Result<void> remove_groups(const Host& host, const SandboxId& id);

// Removes the empty parents, as far as no other isolate or Atoll uses them.
Result<void> remove_parent_groups(const Host& host);

}  // namespace atl::warden
