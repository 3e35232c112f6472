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
#include "linux/pidfd.h"

namespace atl::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kStopGrace{10'000};
constexpr milliseconds kRotationPeriod{5'000};
constexpr milliseconds kAnswerTime{10'000};
constexpr milliseconds kLookPeriod{1'000};  // at heartbeats
constexpr useconds_t kReadyPollUs = 5'000;

Result<Fd> open_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGTERM, SIGINT, SIGCHLD, SIGHUP}) sigaddset(&set, number);
  if (sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return Error::system("block signals");
  int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) return Error::system("signalfd");
  return Fd(fd);
}

// The weightiest of the signals that came.
Asked take_signals(int signals) {
  Asked asked;
  signalfd_siginfo info;
  while (read(signals, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT) asked.what = Asked::What::kStop;
    bool is_wish = info.ssi_signo == SIGHUP && info.ssi_code != SI_KERNEL;
    if (!is_wish || asked.what == Asked::What::kStop) continue;
    asked = {Asked::What::kReplace, info.ssi_code == SI_QUEUE ? info.ssi_int : 0};
  }
  return asked;
}

// As the kernel has it; a program that was started by us has at least a name.
Result<std::vector<std::string>> arguments_of(pid_t pid) {
  ATOLL_TRY(std::string text, read_file("/proc/" + std::to_string(pid) + "/cmdline"));
  std::vector<std::string> arguments;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\0', at), text.size());
    arguments.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  if (arguments.empty()) return Error(Code::kUnavailable, "the process has ended");
  arguments.erase(arguments.begin());
  return arguments;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string how_it_ended(const std::optional<int>& status) {
  if (status && WIFEXITED(*status)) return "exit " + std::to_string(WEXITSTATUS(*status));
  if (status && WIFSIGNALED(*status)) return "signal " + std::to_string(WTERMSIG(*status));
  return "unknown";
}

}  // namespace

Supervisor::Supervisor(std::vector<Child> children)
    : children_(std::move(children)), lived_(2 * kLookPeriod) {}

Result<Supervisor> Supervisor::create(std::vector<SupervisedProgram> programs) {
  std::vector<Child> children;
  for (SupervisedProgram& program : programs) {
    Child child;
    ATOLL_TRY(child.binary, open_file(program.path, O_PATH));
    if (!program.log_path.empty()) {
      ATOLL_TRY(LogFile log, LogFile::open(program.log_path));
      child.log = std::move(log);
    }
    if (!program.heartbeat_directory.empty())
      child.heartbeat.emplace(program.heartbeat_directory, program.name);
    child.program = std::move(program);
    children.push_back(std::move(child));
  }
  return Supervisor(std::move(children));
}

Result<Asked> Supervisor::run() {
  // Isolates whose warden died come to this process, which would otherwise keep them as zombies
  // elsewhere.
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) return Error::system("become subreaper");
  ATOLL_TRY(Fd signals, open_signals());
  ATOLL_TRY(Asked asked, watch_until_asked(signals.get()));
  if (asked.what != Asked::What::kStop) return asked;
  log_info("stopping");
  ATOLL_TRY_VOID(stop());
  return asked;
}

Result<Asked> Supervisor::watch_until_asked(int signals) {
  while (true) {
    start_due();
    std::vector<pollfd> watched = {{.fd = signals, .events = POLLIN, .revents = 0},
                                   {.fd = wake_, .events = POLLIN, .revents = 0}};
    for (const Child& child : children_)
      if (child.adopted) watched.push_back({child.pidfd.get(), POLLIN, 0});
    int ready =
        poll(watched.data(), watched.size(), static_cast<int>(time_to_next_event().count()));
    if (ready < 0 && errno != EINTR) return Error::system("poll");
    Asked asked = take_signals(signals);
    reap();
    find_ended_adopted();
    if (asked.what != Asked::What::kNothing) return asked;
    rotate_logs();
    end_silent();
    turn();
  }
}

milliseconds Supervisor::time_to_next_event() const {
  SteadyTime now = steady_clock::now();
  SteadyTime next = std::min(now + kRotationPeriod, next_look_);
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
  child.is_current = false;
  child.started_at = steady_clock::now();
  log_info("adopted", {{"program", child.program.name}, {"pid", child.pid}});
  return true;
}

void Supervisor::start_due() {
  for (Child& child : children_)
    if (child.pid == 0 && child.restart_at <= steady_clock::now()) start(child);
}

void Supervisor::start(Child& child) {
  child.started_at = steady_clock::now();
  if (child.heartbeat) child.heartbeat->reset();
  auto adopted = adopt(child);
  if (adopted && *adopted) return;
  std::vector<std::string> arguments = {child.program.name};
  arguments.insert(arguments.end(), child.program.arguments.begin(), child.program.arguments.end());
  auto started = !adopted ? Result<StartedProcess>(adopted.error())
                          : start_program({.program = child.binary.get(),
                                           .arguments = std::move(arguments),
                                           .identity = child.program.identity,
                                           .environment = child.program.environment,
                                           .output = child.log ? child.log->fd() : -1});
  if (!started) {
    auto delay = child.delay.after(milliseconds(0));
    child.restart_at = steady_clock::now() + delay;
    log_error("cannot start",
              {{"program", child.program.name}, {"retry_in_ms", delay.count()}, started.error()});
    return;
  }
  child.pid = started->pid;
  child.pidfd = std::move(started->pidfd);
  child.adopted = false;
  child.is_current = child.is_installed;
  log_info("started", {{"program", child.program.name}, {"pid", child.pid}});
}

void Supervisor::note_end(Child& child, std::optional<int> status) {
  auto lived = std::chrono::duration_cast<milliseconds>(steady_clock::now() - child.started_at);
  auto delay = child.delay.after(lived);
  std::string how = how_it_ended(status);
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

// Judged by the time that this process has lived: when the whole machine stood still, or this
// process alone, nobody is to blame for it.
void Supervisor::end_silent() {
  SteadyTime now = steady_clock::now();
  if (now < next_look_) return;
  next_look_ = now + kLookPeriod;
  milliseconds passed = lived_.look(now);
  for (Child& child : children_) {
    if (child.pid == 0 || !child.heartbeat) continue;
    linux::HeartbeatWatch& heartbeat = *child.heartbeat;
    heartbeat.look(passed);
    bool never_began = child.is_current && heartbeat.absence() >= kMostStartTime;
    if (heartbeat.silence() < child.program.most_silence && !never_began) continue;
    log_error("does not answer and is killed", {{"program", child.program.name},
                                                {"pid", child.pid},
                                                {"silent_ms", heartbeat.silence().count()}});
    auto killed = linux::send_signal(child.pidfd.get(), SIGKILL);
    if (!killed) log_error("kill", {{"program", child.program.name}, killed.error()});
    heartbeat.reset();  // it is killed again when it has not ended by the next time
  }
}

void Supervisor::turn() {
  if (on_turn_) on_turn_();
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
    turn();
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

Result<std::string> Supervisor::release_of(const Child& child, int binary) const {
  ATOLL_TRY(ProgramAnswer answer, ask_program({.program = binary,
                                               .arguments = {child.program.name, "--version"},
                                               .identity = child.program.identity},
                                              kAnswerTime));
  std::string line = first_line(answer.text);
  std::string name = child.program.name + " ";
  if (answer.status != 0 || !line.starts_with(name))
    return Error(Code::kUnavailable,
                 child.program.name + " --version ended with " + how_it_ended(answer.status));
  return line.substr(name.size());
}

Result<void> Supervisor::check_installed(const Child& child) const {
  if (!child.program.can_check) return {};
  std::vector<std::string> arguments = child.program.arguments;
  arguments.insert(arguments.begin(), child.program.name);
  arguments.push_back("--check");
  ATOLL_TRY(ProgramAnswer answer, ask_program({.program = child.binary.get(),
                                               .arguments = std::move(arguments),
                                               .identity = child.program.identity},
                                              kAnswerTime));
  if (answer.status == 0) return {};
  return Error(Code::kUnsupported, child.program.name + ": " + first_line(answer.text));
}

// Nothing has been ended yet: each of these failures leaves everything as it is.
Result<std::vector<Supervisor::Before>> Supervisor::prepare(const Wish& wish,
                                                            Replacement& replacement) {
  start_due();
  std::vector<Before> before;
  for (Child& child : children_) {
    if (std::find(wish.names.begin(), wish.names.end(), child.program.name) == wish.names.end())
      continue;
    turn();
    ATOLL_TRY(std::string after, release_of(child, child.binary.get()));
    ATOLL_TRY_VOID(check_installed(child));
    if (child.pid == 0) return Error(Code::kUnavailable, child.program.name + " does not run");
    // By the process, because its file may have been replaced or removed.
    ATOLL_TRY(Fd binary, open_file("/proc/" + std::to_string(child.pid) + "/exe", O_PATH));
    ATOLL_TRY(std::vector<std::string> arguments, arguments_of(child.pid));
    auto release = release_of(child, binary.get());
    replacement.programs.push_back({.name = child.program.name,
                                    .before = release ? *release : "",
                                    .after = after,
                                    .pid = child.pid});
    before.push_back({&child, std::move(binary), std::move(arguments)});
  }
  return before;
}

Result<void> Supervisor::exchange(const std::vector<Child*>& children) {
  for (Child* child : children) {
    turn();
    if (child->pid != 0) {
      ATOLL_TRY(Ended how, end_process(child->pidfd.get(), kStopGrace));
      log_info("ended for another", {{"program", child->program.name},
                                     {"by_force", static_cast<int>(how == Ended::kByForce)}});
    }
    reap();
    find_ended_adopted();
    const std::string& socket = child->program.socket_path;
    if (!socket.empty() && unlink(socket.c_str()) != 0 && errno != ENOENT)
      return Error::system("remove " + socket);
    // This one alone: whichever else has ended has its own turn, and would be ended in it again.
    if (child->pid == 0) start(*child);
  }
  return {};
}

Result<void> Supervisor::wait_ready(const std::vector<Child*>& children, const Wish& wish) {
  SteadyTime deadline = steady_clock::now() + wish.patience;
  Error last(Code::kTimeout, "not ready");
  while (steady_clock::now() < deadline) {
    turn();
    reap();
    find_ended_adopted();
    for (const Child* child : children)
      if (child->pid == 0) return Error(Code::kUnavailable, child->program.name + " ended");
    auto ready = wish.ready();
    if (ready) return {};
    last = std::move(ready).error();
    usleep(kReadyPollUs);
  }
  return last;
}

Replacement Supervisor::replace(const Wish& wish) {
  Replacement replacement;
  auto before = prepare(wish, replacement);
  if (!before) {
    replacement.outcome = Replacement::Outcome::kRefused;
    replacement.failure = before.error().message();
    return replacement;
  }
  std::vector<Child*> children;
  for (Before& one : *before) children.push_back(one.child);
  SteadyTime began = steady_clock::now();
  auto done = exchange(children);
  if (done) done = wait_ready(children, wish);
  if (!done) {
    replacement.failure = done.error().message();
    log_error("going back to what ran before", {done.error()});
    for (Before& one : *before) {
      one.child->binary = std::move(one.binary);
      one.child->is_installed = false;
      one.child->program.arguments = std::move(one.arguments);
    }
    done = exchange(children);
    if (done) done = wait_ready(children, wish);
    using Outcome = Replacement::Outcome;
    replacement.outcome = done ? Outcome::kWentBack : Outcome::kNotReady;
  }
  replacement.unavailable = std::chrono::ceil<milliseconds>(steady_clock::now() - began);
  for (size_t i = 0; i < children.size(); ++i) replacement.programs[i].pid = children[i]->pid;
  return replacement;
}

}  // namespace atl::cli
