#include "agent/process_start.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "agent/channel_protocol.h"
#include "agent/exec_filter.h"
#include "agent/file_worker.h"
#include "agent/imprint_start.h"
#include "agent/passwd.h"
#include "agent/probe.h"
#include "agent/sentry_release.h"
#include "agent/sudo_protocol.h"
#include "agent/terminal.h"
#include "base/file.h"
#include "linux/capabilities.h"
#include "linux/descriptors.h"
#include "linux/file_rules.h"
#include "linux/signals.h"
#include "linux/syscall_filter.h"

namespace atl::agent {
namespace {

constexpr uint64_t kRootCapabilities =
    linux::capability_mask({CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_SETUID,
                            CAP_SETGID, CAP_KILL, CAP_NET_BIND_SERVICE, CAP_SYS_CHROOT});

constexpr std::string_view kTerminalType = "xterm-256color";
constexpr std::string_view kDefaultPath = "/run/atoll/bin:/usr/local/bin:/usr/bin:/bin";

// Numbers in the new process, behind the standard streams.
constexpr int kReportFd = 3;
constexpr int kFileRulesFd = 4;
constexpr int kImprintFd = kControlFd + 1;
constexpr int kFirstFreeFd = kImprintFd + 1;

// Above what the agent and the spawner have, so that the kernel, out of memory, ends a program
// before the processes that report it. A program may lower it to theirs again, not below.
constexpr std::string_view kOomScore = "500";

struct Plan {
  const Start& start;
  const StartFds& fds;
  const rlimit& open_files;
  Becomes becomes;
  const FileRequest* work = nullptr;  // of a worker
  Account account = {};               // known since the step that finds it
};

uint64_t capabilities_of(const Account& account) {
  return account.uid == 0 ? kRootCapabilities : 0;
}

// Each step returns 0 or -1 with errno.

int leave_terminal(Plan&) { return setsid() < 0 ? -1 : 0; }

int connect_streams(Plan& plan) {
  // Copies above the numbers that are about to be overwritten; their originals go with the
  // descriptors.
  int sources[] = {plan.fds.standard_input, plan.fds.stdout_pipe, plan.fds.stderr_pipe,
                   plan.fds.report};
  for (int& source : sources)
    if ((source = fcntl(source, F_DUPFD_CLOEXEC, kFirstFreeFd)) < 0) return -1;
  int rules = plan.fds.file_rules, control = plan.fds.control, imprint = plan.fds.imprint;
  for (int* source : {&rules, &control, &imprint})
    if (*source >= 0 && (*source = fcntl(*source, F_DUPFD_CLOEXEC, kFirstFreeFd)) < 0) return -1;
  if (control >= 0 && dup2(control, kControlFd) < 0) return -1;
  if (imprint >= 0 && dup2(imprint, kImprintFd) < 0) return -1;
  if (rules >= 0 && dup3(rules, kFileRulesFd, O_CLOEXEC) < 0) return -1;
  for (int number = 0; number < kReportFd; ++number)
    if (dup2(sources[number], number) < 0) return -1;
  return dup3(sources[kReportFd], kReportFd, O_CLOEXEC) < 0 ? -1 : 0;
}

int set_limits(Plan& plan) {
  umask(022);
  // Zero would not stop a core_pattern that is a pipe; one byte does.
  rlimit core = {1, 1};
  if (setrlimit(RLIMIT_CORE, &core) != 0) return -1;
  rlim_t files = plan.open_files.rlim_cur;
  if (plan.start.open_files != 0) files = std::min<rlim_t>(files, plan.start.open_files);
  rlimit fixed = {files, files};
  return setrlimit(RLIMIT_NOFILE, &fixed);
}

int close_descriptors(Plan& plan) {
  int last = plan.fds.file_rules >= 0 ? kFileRulesFd : kReportFd;
  if (plan.fds.control < 0)
    return close_range(static_cast<unsigned>(last) + 1, linux::kHighestDescriptor, 0);
  if (last < kControlFd - 1 && close_range(static_cast<unsigned>(last) + 1, kControlFd - 1, 0) != 0)
    return -1;
  int first = plan.fds.imprint < 0 ? kControlFd + 1 : kFirstFreeFd;
  return close_range(static_cast<unsigned>(first), linux::kHighestDescriptor, 0);
}

int errno_of(const Result<void>& result) {
  if (result.ok()) return 0;
  errno = result.error().system_errno();
  return -1;
}

// Here and not in the agent: the file is the sandbox's, and slow storage holds up only this exec.
int find_user(Plan& plan) {
  auto account = find_account(plan.start.user);
  if (account) plan.account = std::move(*account);
  if (!account) errno = account.error().system_errno();
  return account ? 0 : -1;
}

int take_controlling_terminal(Plan& plan) {
  return plan.start.terminal ? take_terminal(STDIN_FILENO, plan.account.uid) : 0;
}

int raise_oom_score(Plan&) {
  return errno_of(write_file_at(AT_FDCWD, "/proc/self/oom_score_adj", kOomScore));
}

int reset_signals(Plan&) { return errno_of(linux::reset_signals()); }

int limit_bounding_set(Plan& plan) {
  return errno_of(linux::limit_bounding_set(capabilities_of(plan.account)));
}

int take_identity(Plan& plan) {
  // Groups first: once the uid is another, there is no right to change them.
  const Account& account = plan.account;
  uint32_t uid = account.uid, gid = account.gid;
  if (setgroups(account.groups.size(), account.groups.data()) != 0) return -1;
  if (setresgid(gid, gid, gid) != 0) return -1;
  return setresuid(uid, uid, uid);
}

int limit_capabilities(Plan& plan) {
  uint64_t capabilities = capabilities_of(plan.account);
  return errno_of(linux::set_capabilities({.effective = capabilities, .permitted = capabilities}));
}

int forbid_new_privileges(Plan&) { return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); }

int enter_directory(Plan& plan) {
  if (!plan.start.directory.empty()) return chdir(plan.start.directory.c_str());
  int entered = chdir(plan.account.home.c_str());
  bool absent = entered != 0 && (errno == ENOENT || errno == ENOTDIR);
  return absent ? chdir("/") : entered;
}

int take_file_rules(Plan& plan) {
  return plan.fds.file_rules < 0 ? 0 : errno_of(linux::take_file_rules(kFileRulesFd));
}

int move_memory_marks(Plan& plan) {
  if (plan.becomes == Becomes::kMachine) return prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  return plan.becomes == Becomes::kImprint ? set_memory_marks(kImprintFd) : 0;
}

std::span<const sock_filter> filter_of(Becomes becomes) {
  switch (becomes) {
    case Becomes::kSentry:
    case Becomes::kSentryProbe:
      return sentry_filter();
    case Becomes::kMachine:
    case Becomes::kMachineProbe:
      return machine_filter();
    default:
      return exec_filter();
  }
}

int load_filter(Plan& plan) {
  return errno_of(linux::load_syscall_filter(filter_of(plan.becomes)));
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::string_view search_path(const std::vector<std::string>& environment) {
  constexpr std::string_view kName = "PATH=";
  for (std::string_view variable : environment)
    if (variable.substr(0, kName.size()) == kName) return variable.substr(kName.size());
  return kDefaultPath;
}

// It has an execve neither behind it nor before it, so it closes by itself what that would close.
[[noreturn]] void become_probe(std::span<const sock_filter> filter, const linux::Facts& more) {
  bool closed = close_range(kReportFd, linux::kHighestDescriptor, 0) == 0;
  _exit(closed && run_probe(filter, more).ok() ? 0 : 1);
}

// What the given environment lacks.
std::vector<std::string> environment_of(const Plan& plan) {
  std::vector<std::string> variables = plan.start.environment;
  auto add = [&](std::string_view name, std::string_view value) {
    auto is_it = [name](std::string_view variable) { return variable.starts_with(name); };
    if (std::any_of(variables.begin(), variables.end(), is_it)) return;
    variables.push_back(std::string(name) + std::string(value));
  };
  add("HOME=", plan.account.home);
  add("USER=", plan.account.name);
  add("LOGNAME=", plan.account.name);
  add("SHELL=", plan.account.shell);
  if (plan.start.terminal) add("TERM=", kTerminalType);
  return variables;
}

int execute(Plan& plan) {
  if (plan.becomes == Becomes::kImprint) return 0;
  if (plan.becomes == Becomes::kProbe || plan.becomes == Becomes::kMachineProbe)
    become_probe(filter_of(plan.becomes), {});
  if (plan.becomes == Becomes::kSentryProbe) become_probe(sentry_filter(), read_sentry_release());
  if (plan.becomes == Becomes::kWorker) run_file_worker(STDIN_FILENO, *plan.work);
  const std::string& name = plan.start.arguments[0];
  std::vector<char*> arguments = pointers_to(plan.start.arguments);
  std::vector<std::string> variables = environment_of(plan);
  std::vector<char*> environment = pointers_to(variables);
  if (name.find('/') != name.npos)
    return execve(name.c_str(), arguments.data(), environment.data());
  // A file that is there but may not be executed is the better explanation than "not found".
  int failure = ENOENT;
  std::string_view path = search_path(plan.start.environment);
  while (true) {
    std::string_view directory = path.substr(0, path.find(':'));
    std::string candidate(directory.empty() ? "." : directory);
    candidate += '/';
    candidate += name;
    execve(candidate.c_str(), arguments.data(), environment.data());
    if (errno == EACCES) failure = EACCES;
    bool absent = errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == ENAMETOOLONG;
    if (!absent) return -1;
    if (directory.size() == path.size()) break;
    path.remove_prefix(directory.size() + 1);
  }
  errno = failure;
  return -1;
}

int begin_from_imprint(Plan&) { return become_imprint(kImprintFd, kReportFd, kControlFd); }

[[noreturn]] void give_up(const Plan& plan, int report, StartStep step) {
  StartReport record = {step, errno};
  if (plan.work != nullptr) refuse_file_work(report, step_name(step), errno);
  // A pipe takes so few bytes whole; without a reader there is nobody to tell.
  [[maybe_unused]] ssize_t written = write(report, &record, sizeof record);
  _exit(127);
}

// The table of contents of a start. The order matters: the old terminal is left before a
// new one is taken; files are read, and the score is written, while the uid is the one that may,
// and when the agent's descriptors, which can be more than the limit, have gone; the bounding set
// needs CAP_SETPCAP and the ids need CAP_SETUID, so both come before the capabilities go; the
// directory is entered with the program's own rights. The filter comes last, for it forbids what
// the steps before it do. Of an imprint, nothing but numbers that the kernel checks is read before
// the filter; and once its marks are set nothing may be allocated, for the break is its break.
[[noreturn]] void become_program(Plan& plan) {
  struct {
    StartStep step;
    int (*take)(Plan&);
  } constexpr kSteps[] = {
      {StartStep::kTerminal, leave_terminal},
      {StartStep::kStreams, connect_streams},
      {StartStep::kSignals, reset_signals},
      {StartStep::kLimits, set_limits},
      {StartStep::kDescriptors, close_descriptors},
      {StartStep::kUser, find_user},
      {StartStep::kControllingTerminal, take_controlling_terminal},
      {StartStep::kOomScore, raise_oom_score},
      {StartStep::kBoundingSet, limit_bounding_set},
      {StartStep::kIdentity, take_identity},
      {StartStep::kCapabilities, limit_capabilities},
      {StartStep::kNoNewPrivileges, forbid_new_privileges},
      {StartStep::kDirectory, enter_directory},
      {StartStep::kFileRules, take_file_rules},
      {StartStep::kMemoryMarks, move_memory_marks},
      {StartStep::kFilter, load_filter},
      {StartStep::kExecute, execute},
      {StartStep::kImprint, begin_from_imprint},
  };
  for (const auto& [step, take] : kSteps) {
    bool moved = step > StartStep::kStreams;
    if (take(plan) != 0) give_up(plan, moved ? kReportFd : plan.fds.report, step);
  }
  _exit(127);  // not reached: the last step succeeds by not returning
}

Result<linux::CloneOutcome> clone_and_become(Plan& plan, Parent parent) {
  uint64_t flags = parent == Parent::kCallersParent ? CLONE_PARENT : 0;
  ATOLL_TRY(auto outcome, linux::clone_process({.flags = flags, .cgroup = plan.fds.leaf}));
  if (outcome.in_child()) become_program(plan);
  return outcome;
}

}  // namespace

std::string_view step_name(StartStep step) {
  switch (step) {
    case StartStep::kTerminal:
      return "setsid";
    case StartStep::kStreams:
      return "connect streams";
    case StartStep::kSignals:
      return "reset signals";
    case StartStep::kLimits:
      return "set limits";
    case StartStep::kDescriptors:
      return "close descriptors";
    case StartStep::kUser:
      return kFindUser;
    case StartStep::kControllingTerminal:
      return "take terminal";
    case StartStep::kOomScore:
      return "set oom score";
    case StartStep::kBoundingSet:
      return "limit bounding set";
    case StartStep::kIdentity:
      return "change user";
    case StartStep::kCapabilities:
      return "set capabilities";
    case StartStep::kNoNewPrivileges:
      return "set no_new_privs";
    case StartStep::kDirectory:
      return "chdir";
    case StartStep::kFileRules:
      return "take file rules";
    case StartStep::kMemoryMarks:
      return "set memory marks";
    case StartStep::kFilter:
      return "load system call filter";
    case StartStep::kExecute:
      return "exec";
    case StartStep::kImprint:
      return "begin from an imprint";
  }
  return "unknown step";
}

Result<OpenFilesLimits> raise_open_files_limit() {
  OpenFilesLimits limits;
  if (getrlimit(RLIMIT_NOFILE, &limits.programs) != 0)
    return Error::system("read open files limit");
  limits.own = {limits.programs.rlim_max, limits.programs.rlim_max};
  if (setrlimit(RLIMIT_NOFILE, &limits.own) != 0) return Error::system("raise open files limit");
  return limits;
}

Result<linux::CloneOutcome> start_process(const Start& start, const StartFds& fds,
                                          const rlimit& open_files, Parent parent,
                                          Becomes becomes) {
  Plan plan = {start, fds, open_files, becomes};
  return clone_and_become(plan, parent);
}

Result<linux::CloneOutcome> start_worker(const FileRequest& request, const StartFds& fds,
                                         const rlimit& open_files, Parent parent) {
  Start start = {.arguments = {}, .environment = {}, .directory = "/", .user = request.user};
  Plan plan = {start, fds, open_files, Becomes::kWorker, &request};
  return clone_and_become(plan, parent);
}

}  // namespace atl::agent
