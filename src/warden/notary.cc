#include "warden/notary.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "linux/capabilities.h"
#include "linux/clone.h"
#include "linux/pidfd.h"
#include "linux/signals.h"
#include "warden/protocol.h"

namespace atl::warden {
namespace {

std::string key_file(const Host& host) { return host.state_dir + "/receipt.key"; }

[[noreturn]] void become_notary(const Host& host, const char* action, int input, int output) {
  std::string key = key_file(host);
  const char* arguments[] = {"atoll-notary", action, key.c_str(), nullptr};
  const char* environment[] = {nullptr};
  bool ready = dup2(input, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
               close_range(STDERR_FILENO + 1, ~0u, CLOSE_RANGE_CLOEXEC) == 0 &&
               linux::reset_signals().ok() && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
               linux::set_capabilities({}).ok();  // no_new_privs keeps root's execve from gaining
  if (ready)
    execve(host.notary.c_str(), const_cast<char**>(arguments), const_cast<char**>(environment));
  _exit(127);
}

Result<std::string> run(const Host& host, const char* action, int input) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return Error::system("pipe");
  Fd output(fds[0]);
  Fd theirs(fds[1]);
  ATOLL_TRY(auto child, linux::clone_process({}));
  if (child.in_child()) become_notary(host, action, input, theirs.get());
  theirs.reset();
  auto text = read_all(output.get(), kMaxReceiptBytes);
  if (!text) (void)linux::send_signal(child.pidfd.get(), SIGKILL);
  ATOLL_TRY(int status, linux::wait_for_exit(child.pidfd.get()));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return Error::from_errno("atoll-notary failed", ECHILD);
  return text;
}

}  // namespace

Result<void> prepare_notary(const Host& host) {
  ATOLL_TRY(Fd nothing, open_file("/dev/null", O_RDONLY));
  ATOLL_TRY_VOID(run(host, "prepare", nothing.get()));
  return {};
}

Result<std::string> run_notary(const Host& host, int facts) { return run(host, "sign", facts); }

}  // namespace atl::warden
