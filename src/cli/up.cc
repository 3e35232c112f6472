// `atoll up`: makes the directories, takes the lock and supervises, in the foreground or detached.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "cli/built_in.h"
#include "cli/go_proxy.h"
#include "cli/host.h"
#include "cli/host_commands.h"
#include "cli/log_file.h"
#include "cli/npm_registry.h"
#include "cli/server.h"
#include "cli/state_directory.h"
#include "cli/supervisor.h"
#include "cli/watchdog.h"
#include "linux/heartbeat.h"
#include "linux/lock_file.h"
#include "linux/pidfd.h"

namespace atl::cli {
namespace {

constexpr std::chrono::milliseconds kReadyTime{30'000};  // on a slow machine, with a pool to make
constexpr std::chrono::milliseconds kReadyPoll{20};
constexpr std::chrono::minutes kCheckTime{2};  // of a database, however large
constexpr size_t kShownLogLines = 15;

struct UpPlan {
  Places places;
  UpCommand up;
  Identity daemon, egress;
  std::string binaries;
  std::string supervisor_log() const { return places.logs() + "/supervisor.log"; }
};

// How this host's own programs reach the internet, for an egress that is told to do as they do
// (docs/egress.md). Not as arguments: they may hold a password.
std::vector<std::string> proxy_variables() {
  std::vector<std::string> variables;
  for (const char* name : {"https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY"})
    if (const char* value = getenv(name)) variables.push_back(std::string(name) + "=" + value);
  return variables;
}

void add_trials(const UpCommand& up, std::vector<std::string>& arguments) {
  if (up.kvm_trial_seconds)
    arguments.insert(arguments.end(), {"--kvm-trial", std::to_string(*up.kvm_trial_seconds)});
  if (!up.gvisor_platform.empty())
    arguments.insert(arguments.end(), {"--gvisor-platform", up.gvisor_platform});
}

void add_growth(const UpCommand& up, std::vector<std::string>& arguments) {
  if (up.kernel_memory_growth)
    arguments.insert(arguments.end(),
                     {"--kernel-memory-growth", std::to_string(*up.kernel_memory_growth)});
}

std::vector<SupervisedProgram> programs_of(const UpPlan& plan) {
  const Places& places = plan.places;
  bool logged = plan.up.mode == UpCommand::Mode::kDetached;
  SupervisedProgram warden = {
      .name = "atoll-warden",
      .path = plan.binaries + "/atoll-warden",
      .arguments = {"--state-dir", places.state, "--run-dir", places.run, "--client-uid",
                    std::to_string(plan.daemon.uid), "--agent", plan.binaries + "/atoll-agent",
                    "--sudo", plan.binaries + "/atoll-sudo", "--notary",
                    plan.binaries + "/atoll-notary"},
      .identity = std::nullopt,
      .lock_path = places.warden_lock(),
      .log_path = logged ? places.logs() + "/atoll-warden.log" : "",
      .socket_path = places.warden_socket()};
  add_growth(plan.up, warden.arguments);
  SupervisedProgram daemon = {.name = "atolld",
                              .path = plan.binaries + "/atolld",
                              .arguments = {"--state-dir", places.state, "--run-dir", places.run,
                                            "--listen", plan.up.listen.string()},
                              .identity = plan.daemon,
                              .lock_path = places.daemon_lock(),
                              .log_path = logged ? places.logs() + "/atolld.log" : "",
                              .can_check = true};
  SupervisedProgram builder = {.name = "atoll-builder",
                               .path = plan.binaries + "/atoll-builder",
                               .arguments = {"--state-dir", places.state, "--run-dir", places.run,
                                             "--client-uid", std::to_string(plan.daemon.uid)},
                               .identity = std::nullopt,
                               .lock_path = builder_lock(places),
                               .log_path = logged ? places.logs() + "/atoll-builder.log" : ""};
  SupervisedProgram egress = {
      .name = "atoll-egress",
      .path = plan.binaries + "/atoll-egress",
      .arguments = {"--state-dir", egress_state(places), "--run-dir", egress_run(places),
                    "--client-uid", std::to_string(plan.daemon.uid)},
      .identity = plan.egress,
      .lock_path = egress_lock(places),
      .log_path = logged ? places.logs() + "/atoll-egress.log" : ""};
  egress.environment = proxy_variables();
  if (std::string registry = find_npm_registry(); !registry.empty())
    builder.arguments.insert(builder.arguments.end(), {"--npm-registry", registry});
  if (std::string proxy = find_go_proxy(); !proxy.empty())
    builder.arguments.insert(builder.arguments.end(), {"--go-proxy", proxy});
  if (plan.up.reach == UpCommand::Reach::kAnywhere) daemon.arguments.push_back("--allow-remote");
  if (!plan.up.warm_pool) daemon.arguments.push_back("--no-warm-pool");
  if (plan.up.pool_bytes != 0)
    warden.arguments.insert(warden.arguments.end(),
                            {"--pool-bytes", std::to_string(plan.up.pool_bytes)});
  add_trials(plan.up, daemon.arguments);
  plan.up.tls.append_to(daemon.arguments);
  warden.heartbeat_directory = builder.heartbeat_directory = places.run;
  egress.heartbeat_directory = egress_run(places);
  daemon.heartbeat_directory = places.daemon_run();
  return {std::move(warden), std::move(builder), std::move(egress), std::move(daemon)};
}

Result<UpPlan> make_plan(const CommandLine& line, const UpCommand& up) {
  if (geteuid() != 0) return Error(Code::kDenied, "atoll up must run as root");
  UpPlan plan{.places = line.places, .up = up, .daemon = {}, .egress = {}, .binaries = ""};
  ATOLL_TRY(plan.daemon, find_daemon_identity());
  ATOLL_TRY(plan.egress, find_egress_identity());
  ATOLL_TRY(plan.binaries, find_binaries());
  for (const char* name : {"/atoll-warden", "/atolld", "/atoll-agent", "/atoll-sudo",
                           "/atoll-notary", "/atoll-builder", "/atoll-egress"})
    if (access((plan.binaries + name).c_str(), X_OK) != 0)
      return Error::system("find " + plan.binaries + name);
  return plan;
}

// Refuses before anything is changed; linux::LockFile::acquire() decides when two start at once.
Result<void> refuse_second(const UpPlan& plan) {
  ATOLL_TRY(std::optional<linux::LockHolder> holder,
            Host(plan.places, plan.binaries, plan.daemon).supervisor());
  if (!holder) return {};
  return Error(Code::kConflict, "Atoll is already up in " + plan.places.state + " (process " +
                                    std::to_string(holder->pid) + ")");
}

// At once, instead of after a row of restarts. An atolld that will be adopted holds its port
// itself.
Result<void> refuse_taken_port(const UpPlan& plan) {
  ATOLL_TRY(std::optional<linux::LockHolder> running,
            Host(plan.places, plan.binaries, plan.daemon).daemon());
  if (running) return {};
  return plan.up.listen.check_free();
}

// At once and in one line, as the port: what atolld would refuse to start with.
Result<void> refuse_unusable_tls(const UpPlan& plan) {
  if (plan.up.tls.listen.empty()) return {};
  ATOLL_TRY_VOID(plan.up.tls.check_readable(plan.daemon));
  ATOLL_TRY(Fd program, open_file(plan.binaries + "/atolld", O_PATH));
  ProgramStart start = {.program = program.get(),
                        .arguments = {"atolld", "--state-dir", plan.places.state, "--run-dir",
                                      plan.places.run, "--allow-remote", "--check"},
                        .identity = plan.daemon};
  plan.up.tls.append_to(start.arguments);
  ATOLL_TRY(ProgramAnswer answer, ask_program(std::move(start), kReadyTime));
  if (answer.status == 0) return {};
  std::string said = answer.text.substr(0, answer.text.find('\n'));
  if (!said.starts_with("TLS: ")) return {};  // what else it refuses is asked later
  said +=
      "\n  remedy: --tls-certificate wants a PEM file with the server's own certificate first,"
      " --tls-key its key without a passphrase";
  return Error(Code::kInvalid, std::move(said));
}

// Runs atolld as it will be run, but to look at what is there, or to adopt it, and end.
Result<void> ask_daemon(const UpPlan& plan, const char* option) {
  SupervisedProgram daemon = programs_of(plan).back();
  ATOLL_TRY(Fd binary, open_file(daemon.path, O_PATH));
  std::vector<std::string> arguments = {daemon.name};
  arguments.insert(arguments.end(), daemon.arguments.begin(), daemon.arguments.end());
  arguments.emplace_back(option);
  ATOLL_TRY(ProgramAnswer answer, ask_program({.program = binary.get(),
                                               .arguments = std::move(arguments),
                                               .identity = daemon.identity},
                                              kCheckTime));
  if (answer.status == 0) return {};
  while (answer.text.ends_with('\n')) answer.text.pop_back();
  return Error(Code::kConflict, answer.text);
}

// Before anything runs that could take files for garbage. An atolld that will be adopted has proved
// its database when it began.
Result<void> check_database(const UpPlan& plan) {
  ATOLL_TRY(std::optional<linux::LockHolder> running,
            Host(plan.places, plan.binaries, plan.daemon).daemon());
  bool adopts = plan.up.orphans == UpCommand::Orphans::kAdopt;
  if (running && adopts)
    return Error(Code::kConflict, "an atolld without a supervisor runs in " + plan.places.state +
                                      "\n  remedy: atoll down");
  if (running) return {};
  if (adopts) ATOLL_TRY_VOID(ask_daemon(plan, "--adopt-orphans"));
  return ask_daemon(plan, "--check");
}

// Both, whichever was replaced: atolld is ready when the warden has answered it.
Result<void> check_all_ready(const Places& places) {
  if (access(places.warden_socket().c_str(), F_OK) != 0)
    return Error::system("find " + places.warden_socket());
  ATOLL_TRY(ListenAddress address, read_address(places));
  ListenAddress reachable = address.reachable();
  return check_ready(reachable.host, reachable.port);
}

Replacement replace_programs(Supervisor& supervisor, const UpPlan& plan, int programs) {
  bool has_warden = programs == 0 || programs == static_cast<int>(RestartCommand::What::kWarden);
  bool has_daemon = programs == 0 || programs == static_cast<int>(RestartCommand::What::kDaemon);
  Supervisor::Wish wish;
  if (has_warden) wish.names.push_back("atoll-warden");
  if (has_warden && has_daemon)
    wish.names.insert(wish.names.end(), {"atoll-builder", "atoll-egress"});
  if (has_daemon) wish.names.push_back("atolld");
  wish.ready = [&plan] { return check_all_ready(plan.places); };
  return supervisor.replace(wish);
}

void publish(const UpPlan& plan, const Replacement& replacement) {
  log_info("replacement", {{"outcome", outcome_name(replacement.outcome)},
                           {"failure", replacement.failure},
                           {"unavailable_ms", replacement.unavailable.count()}});
  auto written = replace_file(plan.places.replacement(), encode(replacement), 0600);
  if (!written) log_error("cannot say how it went", {written.error()});
}

std::vector<std::string> arguments_to_resume(const UpPlan& plan, int programs) {
  std::vector<std::string> arguments = {plan.binaries + "/atoll"};
  if (plan.places.run == Places::beneath(plan.places.state).run)
    arguments.insert(arguments.end(), {"--state-dir", plan.places.state});
  arguments.insert(arguments.end(), {"up", "--listen", plan.up.listen.string()});
  if (plan.up.reach == UpCommand::Reach::kAnywhere) arguments.push_back("--allow-remote");
  if (plan.up.stop == UpCommand::Stop::kKeeps) arguments.push_back("--keep");
  if (!plan.up.warm_pool) arguments.push_back("--no-warm-pool");
  if (plan.up.pool_bytes != 0)
    arguments.insert(arguments.end(), {"--pool-size", std::to_string(plan.up.pool_bytes)});
  add_trials(plan.up, arguments);
  add_growth(plan.up, arguments);
  plan.up.tls.append_to(arguments);
  if (plan.up.mode == UpCommand::Mode::kDetached) arguments.push_back("--detach");
  arguments.insert(arguments.end(), {"--resume", std::to_string(programs)});
  return arguments;
}

// Executes the installed `atoll` over this process, which then replaces the other programs: only it
// knows how they want to be started. Returns when that could not be done.
Error become_installed(const UpPlan& plan, linux::LockFile& lock, int programs) {
  std::vector<std::string> arguments = arguments_to_resume(plan, programs);
  auto binary = open_file(arguments[0], O_PATH);
  if (!binary) return std::move(binary).error();
  // It must at least run: once it has been executed there is no way back.
  auto answer = ask_program(
      {.program = binary->get(), .arguments = {"atoll", "version"}, .identity = std::nullopt},
      kReadyTime);
  if (!answer) return std::move(answer).error();
  if (answer->status != 0) return Error(Code::kUnavailable, arguments[0] + " does not run");
  auto kept = lock.keep_across_exec();
  if (!kept) return std::move(kept).error();
  std::vector<char*> words;
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  execv(words[0], words.data());
  return Error::system("execute " + arguments[0]);
}

Result<linux::Heartbeat> open_heartbeat(const Places& places) {
  ATOLL_TRY(Fd run, open_file(places.run, O_PATH | O_DIRECTORY));
  return linux::Heartbeat::open_at(run.get(), kSupervisorName, geteuid());
}

std::string watchdog_address() {
  const char* address = getenv("NOTIFY_SOCKET");
  return address == nullptr ? "" : address;
}

// Holds the lock for as long as anything of this Atoll is being changed, also while it is removed.
Result<void> supervise(const UpPlan& plan) {
  ATOLL_TRY(linux::LockFile lock, linux::LockFile::acquire(plan.places.supervisor_lock()));
  ATOLL_TRY_VOID(make_run_directories(plan.places, plan.daemon));
  ATOLL_TRY_VOID(make_egress_directories(plan.places, plan.egress, plan.daemon));
  ATOLL_TRY(linux::Heartbeat heartbeat, open_heartbeat(plan.places));
  Watchdog watchdog(watchdog_address());
  ATOLL_TRY(Supervisor supervisor, Supervisor::create(programs_of(plan)));
  auto on_turn = [&heartbeat, &watchdog] {
    heartbeat.beat();
    watchdog.tell_alive(std::chrono::steady_clock::now());
  };
  supervisor.set_on_turn(on_turn, heartbeat.fd());
  watchdog.tell_ready();
  if (plan.up.resumed_for) publish(plan, replace_programs(supervisor, plan, *plan.up.resumed_for));
  while (true) {
    ATOLL_TRY(Asked asked, supervisor.run());
    if (asked.what == Asked::What::kStop) break;
    Error failure = become_installed(plan, lock, asked.programs);
    publish(
        plan,
        {.outcome = Replacement::Outcome::kRefused, .failure = failure.message(), .programs = {}});
  }
  watchdog.tell_stopping();
  if (plan.up.stop == UpCommand::Stop::kKeeps) {
    log_info("stopped, and left the sandboxes to the next");
    return {};
  }
  Host host(plan.places, plan.binaries, plan.daemon);
  ATOLL_TRY([[maybe_unused]] std::vector<std::string> ended, host.end_processes());
  ATOLL_TRY([[maybe_unused]] bool removed, host.remove_remains());
  log_info("stopped");
  return {};
}

[[noreturn]] void become_detached_supervisor(const UpPlan& plan, int log, int null) {
  if (setsid() < 0 || chdir("/") != 0 || dup2(null, STDIN_FILENO) < 0 ||
      dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0)
    _exit(1);
  auto done = supervise(plan);
  if (!done) log_error("supervisor failed", {done.error()});
  _exit(done ? 0 : 1);
}

Result<void> wait_until_ready(const UpPlan& plan, int supervisor) {
  auto deadline = std::chrono::steady_clock::now() + kReadyTime;
  Error last(Code::kTimeout, "not ready");
  while (std::chrono::steady_clock::now() < deadline) {
    ATOLL_TRY(bool ended, wait_for_end(supervisor, kReadyPoll));
    if (ended) return Error(Code::kUnavailable, "the supervisor ended");
    auto address = read_address(plan.places);
    if (!address) continue;
    ListenAddress reachable = address->reachable();
    auto ready = check_ready(reachable.host, reachable.port);
    if (ready) return {};
    last = std::move(ready).error();
  }
  return std::move(last).with_context("Atoll was not ready within 30 s");
}

void show_logs(const UpPlan& plan) {
  for (const char* name : {"supervisor", "atoll-warden", "atoll-builder", "atolld"}) {
    std::string path = plan.places.logs() + "/" + name + ".log";
    if (access(path.c_str(), F_OK) != 0) continue;
    std::string lines = escape_controls(last_lines(path, kShownLogLines));
    fprintf(stderr, "--- %s\n%s\n", path.c_str(), lines.c_str());
  }
}

Result<int> detach(const UpPlan& plan, Format format) {
  ATOLL_TRY(LogFile log, LogFile::open(plan.supervisor_log()));
  ATOLL_TRY_VOID(log.rotate());
  ATOLL_TRY(Fd null, open_file("/dev/null", O_RDWR));
  pid_t pid = fork();
  if (pid < 0) return Error::system("fork");
  if (pid == 0) become_detached_supervisor(plan, log.fd(), null.get());
  ATOLL_TRY(Fd pidfd, linux::open_pidfd(pid));
  auto ready = wait_until_ready(plan, pidfd.get());
  if (!ready) {
    show_logs(plan);
    // A start that failed leaves nothing running; the supervisor cleans up when it is asked to end.
    auto ended = end_process(pidfd.get(), std::chrono::minutes(2));
    if (!ended) return std::move(ended).error();
    return std::move(ready).error();
  }
  ATOLL_TRY(ListenAddress address, read_address(plan.places));
  std::string url = "http://" + address.reachable().string();
  if (format == Format::kJson)
    printf("{\"url\":\"%s\",\"supervisor_pid\":%d}\n", url.c_str(), pid);
  else
    printf("Atoll is up at %s (process %d, logs in %s)\n", url.c_str(), pid,
           plan.places.logs().c_str());
  return 0;
}

}  // namespace

Result<int> run_command(const CommandLine& line, const UpCommand& up) {
  ATOLL_TRY(UpPlan plan, make_plan(line, up));
  configure_log("atoll-up", LogLevel::kInfo);
  if (up.resumed_for) {
    // Not refuse_second(): closing the lock's file there would give up the lock.
    ATOLL_TRY_VOID(supervise(plan));
    return 0;
  }
  ATOLL_TRY_VOID(refuse_second(plan));
  ATOLL_TRY_VOID(refuse_taken_port(plan));
  ATOLL_TRY_VOID(refuse_unusable_tls(plan));
  ATOLL_TRY_VOID(make_state_directories(plan.places, plan.daemon));
  umask(022);
  ATOLL_TRY_VOID(check_database(plan));
  ATOLL_TRY_VOID(install_built_in(plan.binaries, plan.places));
  if (up.mode == UpCommand::Mode::kDetached) return detach(plan, line.format);
  ATOLL_TRY_VOID(supervise(plan));
  return 0;
}

}  // namespace atl::cli
