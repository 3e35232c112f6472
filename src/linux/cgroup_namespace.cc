#include "linux/cgroup_namespace.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "linux/clone.h"
#include "linux/pidfd.h"

namespace atl::linux {

Result<Fd> make_cgroup_namespace(int group) {
  ATOLL_TRY(auto maker, clone_process({.flags = CLONE_FILES, .cgroup = group}));
  if (maker.in_child()) {
    if (unshare(CLONE_NEWCGROUP) != 0) _exit(0);
    int opened = open("/proc/self/ns/cgroup", O_RDONLY | O_CLOEXEC);
    _exit(opened > 0 && opened < 256 ? opened : 0);
  }
  ATOLL_TRY(int status, wait_for_exit(maker.pidfd.get()));
  if (!WIFEXITED(status) || WEXITSTATUS(status) == 0)
    return Error::from_errno("make a cgroup namespace", EPERM);
  return Fd(WEXITSTATUS(status));
}

Result<Fd> register_v1_notice(const std::string& group, int oom_control) {
  Fd notice(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!notice) return Error::system("eventfd");
  std::string line = std::to_string(notice.get()) + " " + std::to_string(oom_control);
  ATOLL_TRY_VOID(write_file_at(AT_FDCWD, group + "/cgroup.event_control", line));
  return notice;
}

}  // namespace atl::linux
