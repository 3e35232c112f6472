#include "cli/process.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "linux/pidfd.h"
#include "linux/signals.h"

namespace atl::cli {
namespace {

// What a child sends when it could not become its program: where, and errno.
struct Failure {
  char operation[28];
  int system_errno;
};

[[noreturn]] void fail(int report, const char* operation) {
  Failure failure = {};
  failure.system_errno = errno;
  strncpy(failure.operation, operation, sizeof failure.operation - 1);
  [[maybe_unused]] ssize_t written = write(report, &failure, sizeof failure);
  _exit(127);
}

void reset_signals(int report) {
  auto done = linux::reset_signals();
  if (done) return;
  errno = done.error().system_errno();
  fail(report, "reset signals");
}

void place_descriptors(int report, int output) {
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0 || dup2(null, STDIN_FILENO) < 0) fail(report, "open /dev/null");
  if (output >= 0 && (dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0))
    fail(report, "dup2");
  // Ours are all close-on-exec; whoever started this program may have left others open.
  if (close_range(STDERR_FILENO + 1, ~0u, CLOSE_RANGE_CLOEXEC) != 0) fail(report, "close_range");
}

// Servers hold one descriptor per connection; the soft limit is 1024 for the sake of select(2).
void raise_descriptor_limit(int report) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) fail(report, "getrlimit");
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) fail(report, "setrlimit");
}

// Groups first and uid last: each step needs the privilege that the next one gives away.
void take_identity(int report, const Identity& identity) {
  if (setgroups(0, nullptr) != 0) fail(report, "setgroups");
  if (setresgid(identity.gid, identity.gid, identity.gid) != 0) fail(report, "setresgid");
  if (setresuid(identity.uid, identity.uid, identity.uid) != 0) fail(report, "setresuid");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail(report, "no_new_privs");
}

[[noreturn]] void become_program(int report, const ProgramStart& start) {
  if (setsid() < 0) fail(report, "setsid");
  reset_signals(report);
  place_descriptors(report, start.output);
  raise_descriptor_limit(report);
  umask(022);
  if (chdir("/") != 0) fail(report, "chdir /");
  if (start.identity) take_identity(report, *start.identity);

  std::vector<char*> arguments;
  for (const std::string& argument : start.arguments)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  std::vector<const char*> environment = {"PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin",
                                          "LANG=C.UTF-8"};
  for (const std::string& variable : start.environment) environment.push_back(variable.c_str());
  environment.push_back(nullptr);
  // By descriptor: the directory of the binary may be closed to the identity just taken.
  execveat(start.program, "", arguments.data(), const_cast<char**>(environment.data()),
           AT_EMPTY_PATH);
  fail(report, "execute");
}

}  // namespace

Result<StartedProcess> start_program(const ProgramStart& start) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Error::system("pipe");
  Fd reader(ends[0]), writer(ends[1]);
  pid_t pid = fork();
  if (pid < 0) return Error::system("fork");
  if (pid == 0) become_program(writer.get(), start);
  writer.reset();

  auto report = read_all(reader.get(), sizeof(Failure));
  if (report && report->empty()) {
    ATOLL_TRY(Fd pidfd, linux::open_pidfd(pid));
    return StartedProcess{pid, std::move(pidfd)};
  }
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
  if (!report) return std::move(report).error();
  Failure failure = {};
  memcpy(&failure, report->data(), std::min(report->size(), sizeof failure));
  return Error::from_errno("start " + start.arguments[0] + ": " + failure.operation,
                           failure.system_errno);
}

Result<bool> wait_for_end(int pidfd, std::chrono::milliseconds limit) {
  auto deadline = std::chrono::steady_clock::now() + limit;
  while (true) {
    auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd watch = {.fd = pidfd, .events = POLLIN, .revents = 0};
    int ready = poll(&watch, 1, static_cast<int>(std::max<int64_t>(0, left.count())));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return Error::system("poll pidfd");
    if (ready == 0 && left.count() <= 0) return false;
  }
}

Result<ProgramAnswer> ask_program(ProgramStart start, std::chrono::milliseconds limit) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Error::system("pipe");
  Fd reader(ends[0]), writer(ends[1]);
  start.output = writer.get();
  ATOLL_TRY(StartedProcess started, start_program(start));
  writer.reset();
  // It prints less than a pipe holds, or has itself to blame.
  ATOLL_TRY(bool ended, wait_for_end(started.pidfd.get(), limit));
  if (!ended) ATOLL_TRY_VOID(linux::send_signal(started.pidfd.get(), SIGKILL));
  ATOLL_TRY(int status, linux::wait_for_exit(started.pidfd.get()));
  if (!ended) return Error(Code::kTimeout, start.arguments[0] + " did not answer");
  ATOLL_TRY(std::string text, read_all(reader.get()));
  return ProgramAnswer{status, std::move(text)};
}

Result<Ended> end_process(int pidfd, std::chrono::milliseconds grace) {
  auto asked = linux::send_signal(pidfd, SIGTERM);
  if (!asked && asked.error().system_errno() == ESRCH) return Ended::kBySelf;
  if (!asked) return std::move(asked).error();
  ATOLL_TRY(bool ended, wait_for_end(pidfd, grace));
  if (ended) return Ended::kBySelf;
  auto killed = linux::send_signal(pidfd, SIGKILL);
  if (!killed && killed.error().system_errno() != ESRCH) return std::move(killed).error();
  ATOLL_TRY(bool gone, wait_for_end(pidfd, std::chrono::seconds(10)));
  if (!gone) return Error(Code::kTimeout, "the process does not end even by SIGKILL");
  return Ended::kByForce;
}

}  // namespace atl::cli
