#include "linux/powerless_program.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "linux/capabilities.h"
#include "linux/clone.h"
#include "linux/pidfd.h"
#include "linux/signals.h"

namespace atl::linux {
namespace {

[[noreturn]] void execute(const char* program, const char* const* arguments, int input,
                          int output) {
  const char* environment[] = {nullptr};
  bool ready = dup2(input, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
               close_range(STDERR_FILENO + 1, ~0u, CLOSE_RANGE_CLOEXEC) == 0 &&
               reset_signals().ok() && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
               set_capabilities({}).ok();  // no_new_privs keeps root's execve from gaining
  if (ready) execve(program, const_cast<char**>(arguments), const_cast<char**>(environment));
  _exit(127);
}

}  // namespace

Result<std::string> run_without_rights(const std::string& program, const char* const* arguments,
                                       int input, size_t most_bytes) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return Error::system("pipe");
  Fd output(fds[0]);
  Fd theirs(fds[1]);
  ATOLL_TRY(auto child, clone_process({}));
  if (child.in_child()) execute(program.c_str(), arguments, input, theirs.get());
  theirs.reset();
  auto text = read_all(output.get(), most_bytes);
  if (!text) (void)send_signal(child.pidfd.get(), SIGKILL);
  ATOLL_TRY(int status, wait_for_exit(child.pidfd.get()));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return Error::from_errno(program + " failed", ECHILD);
  return text;
}

}  // namespace atl::linux
