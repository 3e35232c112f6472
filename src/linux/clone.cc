#include "linux/clone.h"

#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "linux/kernel_gaps.h"
#include "linux/pidfd.h"

namespace atl::linux {
namespace {

constexpr int kNotInItsGroup = 127;

// What a kernel without these flags (gVisor's) can do instead: the child enters the group by
// itself, before it does anything else.
Result<CloneOutcome> fork_process(const CloneRequest& request) {
  pid_t pid = fork();
  if (pid < 0) return Error::system("fork");
  if (pid == 0) {
    bool entered = request.cgroup < 0 || write_file_at(request.cgroup, "cgroup.procs", "0").ok();
    if (!entered) _exit(kNotInItsGroup);
    return CloneOutcome{0, Fd()};
  }
  ATOLL_TRY(Fd pidfd, open_pidfd(pid));
  return CloneOutcome{pid, std::move(pidfd)};
}

}  // namespace

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
  bool unknown = pid < 0 && (errno == EINVAL || errno == ENOSYS) && request.flags == 0;
  if (unknown && has_kernel_gaps()) return fork_process(request);
  if (pid < 0) return Error::system("clone");
  if (pid == 0) return CloneOutcome{0, Fd()};
  return CloneOutcome{static_cast<pid_t>(pid), Fd(pidfd)};
}

}  // namespace atl::linux
