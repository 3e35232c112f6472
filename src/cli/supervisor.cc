#include "cli/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "base/log.h"
#include "linux/lock_file.h"

namespace atl::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kStopGrace{10'000};
constexpr milliseconds kRotationPeriod{5'000};

Result<Fd> open_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGTERM, SIGINT, SIGCHLD, SIGHUP}) sigaddset(&set, number);
  if (sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return Error::system("block signals");
  int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) return Error::system("signalfd");
  return Fd(fd);
}

// Whether one of the signals that came asks to stop. SIGHUP (a closed terminal) does not.
bool take_signals(int signals) {
  bool stop = false;
  signalfd_siginfo info;
  while (read(signals, &info, sizeof info) == sizeof info)
    stop |= info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT;
  return stop;
}

}  // namespace

Result<Supervisor> Supervisor::create(std::vector<SupervisedProgram> programs) {
  std::vector<Child> children;
  for (SupervisedProgram& program : programs) {
    Child child;
    ATOLL_TRY(child.binary, open_file(program.path, O_PATH));
    if (!program.log_path.empty()) {
      ATOLL_TRY(LogFile log, LogFile::open(program.log_path));
      child.log = std::move(log);
    }
    child.program = std::move(program);
    children.push_back(std::move(child));
  }
  return Supervisor(std::move(children));
}

Result<void> Supervisor::run() {
  // Isolates whose warden died come to this process, which would otherwise keep them as zombies
  // elsewhere.
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) return Error::system("become subreaper");
  ATOLL_TRY(Fd signals, open_signals());
  ATOLL_TRY_VOID(watch_until_asked_to_stop(signals.get()));
  log_info("stopping");
  return stop();
}

Result<void> Supervisor::watch_until_asked_to_stop(int signals) {
  while (true) {
    start_due();
    std::vector<pollfd> watched = {{.fd = signals, .events = POLLIN, .revents = 0}};
    for (const Child& child : children_)
      if (child.adopted) watched.push_back({child.pidfd.get(), POLLIN, 0});
    int ready =
        poll(watched.data(), watched.size(), static_cast<int>(time_to_next_event().count()));
    if (ready < 0 && errno != EINTR) return Error::system("poll");
    bool asked_to_stop = take_signals(signals);
    reap();
    find_ended_adopted();
    if (asked_to_stop) return {};
    rotate_logs();
  }
}

milliseconds Supervisor::time_to_next_event() const {
  SteadyTime now = steady_clock::now();
  SteadyTime next = now + kRotationPeriod;
  for (const Child& child : children_)
    if (child.pid == 0) next = std::min(next, child.restart_at);
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(next - now));
}

Result<bool> Supervisor::adopt(Child& child) {
  uid_t uid = child.program.identity ? child.program.identity->uid : geteuid();
  ATOLL_TRY(std::optional<linux::LockHolder> holder,
            linux::find_lock_holder(child.program.lock_path, uid));
  if (!holder) return false;
  child.pid = holder->pid;
  child.pidfd = std::move(holder->pidfd);
  child.adopted = true;
  child.started_at = steady_clock::now();
  log_info("adopted", {{"program", child.program.name}, {"pid", child.pid}});
  return true;
}

void Supervisor::start_due() {
  for (Child& child : children_) {
    if (child.pid != 0 || child.restart_at > steady_clock::now()) continue;
    child.started_at = steady_clock::now();
    auto adopted = adopt(child);
    if (adopted && *adopted) continue;
    std::vector<std::string> arguments = {child.program.name};
    arguments.insert(arguments.end(), child.program.arguments.begin(),
                     child.program.arguments.end());
    auto started = !adopted ? Result<StartedProcess>(adopted.error())
                            : start_program({.program = child.binary.get(),
                                             .arguments = std::move(arguments),
                                             .identity = child.program.identity,
                                             .output = child.log ? child.log->fd() : -1});
    if (!started) {
      auto delay = child.delay.after(milliseconds(0));
      child.restart_at = steady_clock::now() + delay;
      log_error("cannot start",
                {{"program", child.program.name}, {"retry_in_ms", delay.count()}, started.error()});
      continue;
    }
    child.pid = started->pid;
    child.pidfd = std::move(started->pidfd);
    child.adopted = false;
    log_info("started", {{"program", child.program.name}, {"pid", child.pid}});
  }
}

void Supervisor::note_end(Child& child, std::optional<int> status) {
  auto lived = std::chrono::duration_cast<milliseconds>(steady_clock::now() - child.started_at);
  auto delay = child.delay.after(lived);
  std::string how = "unknown";
  if (status && WIFEXITED(*status)) how = "exit " + std::to_string(WEXITSTATUS(*status));
  if (status && WIFSIGNALED(*status)) how = "signal " + std::to_string(WTERMSIG(*status));
  log_warning("ended", {{"program", child.program.name},
                        {"pid", child.pid},
                        {"how", how},
                        {"lived_ms", lived.count()},
                        {"restart_in_ms", delay.count()}});
  child.pid = 0;
  child.pidfd.reset();
  child.adopted = false;
  child.restart_at = steady_clock::now() + delay;
}

void Supervisor::reap() {
  int status = 0;
  while (pid_t pid = waitpid(-1, &status, WNOHANG)) {
    if (pid < 0) return;  // no children at all
    for (Child& child : children_)
      if (child.pid == pid && !child.adopted) note_end(child, status);
  }
}

void Supervisor::find_ended_adopted() {
  for (Child& child : children_) {
    if (!child.adopted) continue;
    auto ended = wait_for_end(child.pidfd.get(), milliseconds(0));
    if (!ended) log_error("watch", {{"program", child.program.name}, ended.error()});
    if (ended && *ended) note_end(child, std::nullopt);
  }
}

void Supervisor::rotate_logs() {
  if (steady_clock::now() < next_rotation_) return;
  next_rotation_ = steady_clock::now() + kRotationPeriod;
  for (Child& child : children_) {
    if (!child.log) continue;
    auto rotated = child.log->rotate();
    if (!rotated) log_error("rotate log", {{"program", child.program.name}, rotated.error()});
  }
}

Result<void> Supervisor::stop() {
  std::optional<Error> first_failure;
  for (auto child = children_.rbegin(); child != children_.rend(); ++child) {
    if (child->pid == 0) continue;
    auto ended = end_process(child->pidfd.get(), kStopGrace);
    if (!ended) {
      log_error("cannot stop", {{"program", child->program.name}, ended.error()});
      if (!first_failure) first_failure = ended.error();
      continue;
    }
    log_info("stopped", {{"program", child->program.name},
                         {"pid", child->pid},
                         {"by_force", static_cast<int>(*ended == Ended::kByForce)}});
  }
  while (waitpid(-1, nullptr, WNOHANG) > 0) continue;
  if (first_failure) return *first_failure;
  return {};
}

}  // namespace atl::cli
