// The midwife: a short-lived process between the helper and the jail, for two things that neither
// can do itself.
//
// Where the v2 tree is mounted with `nsdelegate`, as systemd does, nobody may start a process from
// outside the root of his own cgroup namespace, nor write to that root. So the helper stays in the
// host's namespace, which it needs for removal, and the midwife, born in <id>/agent, enters the
// isolate's and has the jail there, as a child of the helper.
//
// A network namespace takes longer to make than all the others together. The midwife makes the
// jail's, owned by the jail's user namespace, while the jail builds its mounts, and sends it.
#pragma once

#include <sys/types.h>

#include "base/fd.h"
#include "base/result.h"
#include "linux/unix_socket.h"
#include "warden/isolate_groups.h"
#include "warden/jail.h"

namespace atl::warden {

struct Birth {
  Fd midwife;  // pidfd; she ends by herself
  Fd announced;
  linux::SocketPair network;
  linux::SocketPair sockets;  // from her to the helper
  Fd jail;                    // pidfd
  pid_t jail_pid = 0;
};

// Sends for the midwife. `owner` is the user that owns the jail's user namespace. Until the jail is
// born, the descriptors of the plan must stay open; its network sockets are filled in.
Result<Birth> begin_birth(JailPlan plan, const IsolateGroups& groups, uid_t owner);

// Returns when the jail is there.
Result<void> await_birth(Birth& birth, const Progress& progress);

// Waits for her end. An error if she failed; then so has the jail.
Result<void> await_midwife(int midwife);

}  // namespace atl::warden
