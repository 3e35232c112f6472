#include "linux/pidfd.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>

#include "base/file.h"
#include "linux/kernel_gaps.h"

namespace atl::linux {
namespace {

bool is_directory(int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 && S_ISDIR(status.st_mode);
}

// "12 (name) …"; of a process that is gone there is no such file.
Result<pid_t> pid_of(int directory) {
  ATOLL_TRY(std::string text, read_file_at(directory, "stat"));
  pid_t pid = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (code != std::errc() || pid <= 0) return Error::from_errno("read a pid", ESRCH);
  return pid;
}

}  // namespace

Result<Fd> open_pidfd(pid_t pid) {
  long fd = syscall(SYS_pidfd_open, pid, 0);
  if (fd < 0 && errno == ENOSYS && has_kernel_gaps())
    return open_file("/proc/" + std::to_string(pid), O_RDONLY | O_DIRECTORY);
  if (fd < 0) return Error::system("pidfd_open " + std::to_string(pid));
  return Fd(static_cast<int>(fd));
}

Result<void> send_signal(int pidfd, int signal_number) {
  if (is_directory(pidfd)) {
    ATOLL_TRY(pid_t pid, pid_of(pidfd));
    if (kill(pid, signal_number) != 0) return Error::system("kill " + std::to_string(pid));
    return {};
  }
  if (syscall(SYS_pidfd_send_signal, pidfd, signal_number, nullptr, 0) != 0)
    return Error::system("send signal " + std::to_string(signal_number));
  return {};
}

Result<void> queue_signal(int pidfd, int signal_number, int value) {
  siginfo_t info = {};
  info.si_signo = signal_number;
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_int = value;
  if (syscall(SYS_pidfd_send_signal, pidfd, signal_number, &info, 0) != 0)
    return Error::system("send signal " + std::to_string(signal_number));
  return {};
}

bool has_ended(int pidfd) {
  if (is_directory(pidfd)) return !pid_of(pidfd).ok();
  pollfd waiting = {.fd = pidfd, .events = POLLIN, .revents = 0};
  return poll(&waiting, 1, 0) != 0;
}

Result<int> wait_for_exit(int pidfd) {
  siginfo_t info = {};
  while (waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED | __WALL) != 0)
    if (errno != EINTR) return Error::system("wait for process");
  bool exited = info.si_code == CLD_EXITED;
  int core = info.si_code == CLD_DUMPED ? WCOREFLAG : 0;
  return exited ? W_EXITCODE(info.si_status, 0) : W_EXITCODE(0, info.si_status) | core;
}

}  // namespace atl::linux
