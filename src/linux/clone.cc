#include "linux/clone.h"

#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace atl::linux {

Result<CloneOutcome> clone_process(const CloneRequest& request) {
  int pidfd = -1;
  clone_args arguments = {};
  arguments.flags = request.flags | CLONE_PIDFD;
  arguments.pidfd = reinterpret_cast<uint64_t>(&pidfd);
  // With CLONE_PARENT the kernel refuses an exit signal and takes the caller's own.
  if ((request.flags & CLONE_PARENT) == 0) arguments.exit_signal = SIGCHLD;
  if (request.cgroup >= 0) {
    arguments.flags |= CLONE_INTO_CGROUP;
    arguments.cgroup = static_cast<uint64_t>(request.cgroup);
  }
  long pid = syscall(SYS_clone3, &arguments, sizeof arguments);
  if (pid < 0) return Error::system("clone");
  if (pid == 0) return CloneOutcome{0, Fd()};
  return CloneOutcome{static_cast<pid_t>(pid), Fd(pidfd)};
}

}  // namespace atl::linux
