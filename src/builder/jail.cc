#include "builder/jail.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "agent/exec_filter.h"
#include "base/file.h"
#include "builder/jail_root.h"
#include "linux/capabilities.h"
#include "linux/clone.h"
#include "linux/pidfd.h"
#include "linux/signals.h"
#include "linux/syscall_filter.h"
#include "linux/unix_socket.h"

namespace atl::builder {
namespace {

constexpr rlim_t kMaxOpenFiles = 4096;
constexpr char kFailedInput = 'i';
constexpr char kFailedOtherwise = 'f';
constexpr char kDone = 'd';

Result<void> expect(int socket, std::string_view word) {
  ATOLL_TRY(linux::TextMessage message, linux::receive_text(socket, 16, -1));
  if (message.text != word) return Error(Code::kCancelled, "the builder is gone");
  return {};
}

// After the mounts: they were made by root and cannot be changed from the new user namespace.
Result<void> become_namespace_root(int socket) {
  if (unshare(CLONE_NEWUSER) != 0) return Error::system("make a user namespace");
  ATOLL_TRY_VOID(linux::send_message(socket, std::string_view("map"), {}));
  ATOLL_TRY_VOID(expect(socket, "mapped"));
  if (setgroups(0, nullptr) != 0) return Error::system("setgroups");
  if (setresgid(0, 0, 0) != 0) return Error::system("setresgid");
  if (setresuid(0, 0, 0) != 0) return Error::system("setresuid");
  return {};
}

Result<void> set_limits() {
  rlimit files = {kMaxOpenFiles, kMaxOpenFiles};
  // 0 does not stop a core_pattern that is a program; 1 byte does.
  rlimit core = {1, 1};
  if (setrlimit(RLIMIT_NOFILE, &files) != 0 || setrlimit(RLIMIT_CORE, &core) != 0)
    return Error::system("setrlimit");
  return {};
}

Result<void> drop_rights(const Jail& jail) {
  bool filtered = jail.programs != Jail::Programs::kAny;
  if (filtered) ATOLL_TRY_VOID(linux::limit_bounding_set(jail.capabilities));
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Error::system("no_new_privs");
  if (!filtered) return {};
  ATOLL_TRY_VOID(
      linux::set_capabilities({.effective = jail.capabilities, .permitted = jail.capabilities}));
  return linux::load_syscall_filter(agent::exec_filter());
}

Result<void> keep_only(const Jail& jail, int socket) {
  ATOLL_TRY(Fd nothing, open_file("/dev/null", O_RDONLY));
  if (dup2(nothing.get(), STDIN_FILENO) < 0 || dup2(jail.log, STDOUT_FILENO) < 0 ||
      dup2(jail.log, STDERR_FILENO) < 0)
    return Error::system("dup2");
  std::vector<unsigned> open(jail.kept.begin(), jail.kept.end());
  open.push_back(static_cast<unsigned>(socket));
  std::sort(open.begin(), open.end());
  unsigned first = STDERR_FILENO + 1;
  for (unsigned fd : open) {
    if (fd > first && close_range(first, fd - 1, 0) != 0) return Error::system("close_range");
    first = std::max(first, fd + 1);
  }
  if (close_range(first, ~0u, 0) != 0) return Error::system("close_range");
  return {};
}

// The table of contents of the jail; the order matters.
Result<void> enter(const Ground& ground, const Jail& jail, int socket) {
  // For the moment until the user changes, which takes it off again.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) return Error::system("PDEATHSIG");
  if (jail.network == Jail::Network::kHost && setns(ground.host_network.get(), CLONE_NEWNET) != 0)
    return Error::system("enter the network");
  ATOLL_TRY_VOID(linux::reset_signals());
  ATOLL_TRY_VOID(enter_jail_root(ground, jail));
  ATOLL_TRY_VOID(keep_only(jail, socket));
  ATOLL_TRY_VOID(become_namespace_root(socket));
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) return Error::system("PDEATHSIG");
  umask(0022);
  if (setsid() < 0) return Error::system("setsid");
  ATOLL_TRY_VOID(set_limits());
  return drop_rights(jail);
}

[[noreturn]] void run_child(const Ground& ground, const Jail& jail, int socket,
                            const std::function<Result<std::string>()>& body) {
  Result<void> entered = enter(ground, jail, socket);
  Result<std::string> done = entered ? body() : Result<std::string>(entered.error());
  std::string message(1, kDone);
  if (!done) message[0] = done.error().code() == Code::kInvalid ? kFailedInput : kFailedOtherwise;
  message += done ? *done : done.error().message();
  if (message.size() > kMaxAnswerBytes) message.resize(kMaxAnswerBytes);
  (void)linux::send_message(socket, message, {});
  _exit(0);
}

Result<void> write_id_maps(pid_t pid) {
  std::string map = "0 " + std::to_string(kFirstId) + " " + std::to_string(kIds);
  std::string directory = "/proc/" + std::to_string(pid);
  for (const char* name : {"uid_map", "gid_map"}) {
    ATOLL_TRY(Fd file, open_file(directory + "/" + name, O_WRONLY));
    ATOLL_TRY_VOID(write_all(file.get(), map));
  }
  return {};
}

Result<std::string> take_answer(const linux::CloneOutcome& child, int socket,
                                std::chrono::steady_clock::time_point deadline) {
  while (true) {
    auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return Error(Code::kTimeout, "took longer than a build may");
    ATOLL_TRY(linux::TextMessage message,
              linux::receive_text(socket, kMaxAnswerBytes, static_cast<int>(left.count())));
    if (message.text == "map") {
      ATOLL_TRY_VOID(write_id_maps(child.pid));
      ATOLL_TRY_VOID(linux::send_message(socket, std::string_view("mapped"), {}));
      continue;
    }
    if (message.text.empty()) return Error(Code::kUnavailable, "was killed");
    std::string text = message.text.substr(1);
    if (message.text[0] == kDone) return text;
    return Error(message.text[0] == kFailedInput ? Code::kInvalid : Code::kUnavailable, text);
  }
}

}  // namespace

Result<std::string> run_in_jail(const Ground& ground, const Jail& jail,
                                const std::function<Result<std::string>()>& body) {
  ATOLL_TRY(linux::SocketPair sockets, linux::make_socket_pair(SOCK_SEQPACKET));
  // A network namespace of its own also for the stage that leaves it again: there is no moment in
  // which another stage could be in the host's.
  ATOLL_TRY(auto child, linux::clone_process({.flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC |
                                                       CLONE_NEWUTS | CLONE_NEWNET}));
  if (child.in_child()) run_child(ground, jail, sockets.theirs.get(), body);
  sockets.theirs.reset();
  Result<std::string> answer = take_answer(child, sockets.ours.get(), jail.deadline);
  (void)linux::send_signal(child.pidfd.get(), SIGKILL);  // ESRCH: it has ended
  ATOLL_TRY([[maybe_unused]] int status, linux::wait_for_exit(child.pidfd.get()));
  return answer;
}

}  // namespace atl::builder
