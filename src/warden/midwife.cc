#include "warden/midwife.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "linux/capabilities.h"
#include "linux/clone.h"
#include "linux/pidfd.h"
#include "linux/unix_socket.h"
#include "warden/enforcement.h"
#include "warden/sandbox_network.h"

namespace atl::warden {
namespace {

// All but the cgroup namespace, which the jail inherits, and that of the network, which it joins.
constexpr uint64_t kNamespaces =
    CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS;

Result<void> make_network(int jail, const JailPlan& plan) {
  if (setns(jail, CLONE_NEWUSER) != 0) return Error::system("enter the user namespace");
  if (unshare(CLONE_NEWNET) != 0) return Error::system("make a network namespace");
  ATOLL_TRY_VOID(linux::close_network(kSandboxNetwork));
  ATOLL_TRY(auto sockets, linux::make_network_sockets(kSandboxNetwork));
  std::array<int, linux::kNetworkSockets> numbers;
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = sockets[i].get();
  ATOLL_TRY_VOID(linux::send_byte(plan.sockets_sender, kNetworkIsHere, numbers));
  ATOLL_TRY(Fd network, open_file("/proc/self/ns/net", O_RDONLY));
  int fds[] = {network.get()};
  return linux::send_byte(plan.network_sender, kNetworkIsHere, fds);
}

// Ends with an errno as long as the helper only waits for the jail; after that the reason is in the
// progress page.
[[noreturn]] void run_midwife(const JailPlan& plan, const IsolateGroups& groups, uid_t owner,
                              int born) {
  if (setns(groups.cgroup_namespace.get(), CLONE_NEWCGROUP) != 0) _exit(errno);
  // Whoever makes a user namespace owns it and pays, in the host's books, for what is counted by
  // user: inotify instances and watches, pending signals, namespaces. Made by root, all isolates
  // together would use up root's share. Some hosts refuse user namespaces without capabilities.
  auto owned = linux::change_user_with_capabilities(owner);
  if (!owned) _exit(owned.error().system_errno());
  uint64_t namespaces = kNamespaces | (has_time_namespaces() ? CLONE_NEWTIME : 0);
  auto clone = linux::clone_process({.flags = namespaces | CLONE_PARENT});
  if (!clone) _exit(clone.error().system_errno());
  if (clone->in_child()) Jail(plan).run();
  plan.progress->jail_pid = clone->pid;
  plan.progress->jail_pidfd = clone->pidfd.release();
  // The descriptors are the helper's until now, so that the jail's pidfd is its own. From here on
  // they are not: our end of the network's socket must close with us.
  if (unshare(CLONE_FILES) != 0) _exit(errno);
  if (eventfd_write(born, 1) != 0) _exit(errno);
  Result<void> made = plan.fail_at == Step::kNetwork
                          ? Error::from_errno("injected failure", ECANCELED)
                          : make_network(plan.progress->jail_pidfd, plan);
  if (!made) plan.progress->note_failure(Step::kNetwork, made.error());
  _exit(made.ok() ? 0 : 1);
}

}  // namespace

Result<Birth> begin_birth(JailPlan plan, const IsolateGroups& groups, uid_t owner) {
  Birth birth;
  ATOLL_TRY(birth.network, linux::make_socket_pair(SOCK_SEQPACKET));
  plan.network = birth.network.theirs.get();
  plan.network_sender = birth.network.ours.get();
  ATOLL_TRY(birth.sockets, linux::make_socket_pair(SOCK_SEQPACKET));
  plan.sockets_sender = birth.sockets.theirs.get();
  birth.announced = Fd(eventfd(0, EFD_CLOEXEC));
  if (!birth.announced) return Error::system("eventfd");
  ATOLL_TRY(auto midwife,
            linux::clone_process({.flags = CLONE_FILES, .cgroup = groups.agent.get()}));
  if (midwife.in_child()) run_midwife(plan, groups, owner, birth.announced.get());
  birth.midwife = std::move(midwife.pidfd);
  return birth;
}

Result<void> await_birth(Birth& birth, const Progress& progress) {
  pollfd waiting[] = {{.fd = birth.announced.get(), .events = POLLIN, .revents = 0},
                      {.fd = birth.midwife.get(), .events = POLLIN, .revents = 0}};
  if (poll(waiting, std::size(waiting), -1) < 0) return Error::system("wait for the jail");
  if (waiting[0].revents == 0) {
    ATOLL_TRY(int status, linux::wait_for_exit(birth.midwife.get()));
    return Error::from_errno("clone the jail", WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD);
  }
  birth.jail = Fd(progress.jail_pidfd);
  birth.jail_pid = progress.jail_pid;
  birth.network = {};
  birth.sockets.theirs.reset();
  return {};
}

Result<void> await_midwife(int midwife) {
  ATOLL_TRY(int status, linux::wait_for_exit(midwife));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return Error::from_errno("make the network", ECHILD);
  return {};
}

}  // namespace atl::warden
