#include "cli/doctor/trial.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>

#include "base/file.h"
#include "cli/doctor/uid_range.h"
#include "linux/clone.h"
#include "linux/pidfd.h"
#include "linux/unix_socket.h"

namespace atl::cli {
namespace {

constexpr int kTrialTimeoutMs = 10'000;
constexpr char kGo = 'g';

Result<void> become_root_inside() {
  if (geteuid() == 0) return {};
  if (setresgid(0, 0, 0) != 0) return Error::system("setresgid");
  if (setresuid(0, 0, 0) != 0) return Error::system("setresuid");
  return {};
}

Result<void> work_in_child(int socket, const TrialPlace& place,
                           const std::function<Result<void>()>& work) {
  ATOLL_TRY(auto message, linux::receive_byte(socket, kTrialTimeoutMs));
  if (!message) return Error::from_errno("the parent is gone", EPIPE);
  if ((place.namespaces & CLONE_NEWUSER) != 0) ATOLL_TRY_VOID(become_root_inside());
  // After the change of uid, which would clear it.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) return Error::system("PR_SET_PDEATHSIG");
  return work();
}

// The answer is one message: the errno, a line feed and the text; an empty text is a success.
[[noreturn]] void run_child(int socket, const TrialPlace& place,
                            const std::function<Result<void>()>& work) {
  Result<void> result = work_in_child(socket, place, work);
  std::string answer = "0\n";
  if (!result)
    answer = std::to_string(result.error().system_errno()) + "\n" + result.error().message();
  send(socket, answer.data(), answer.size(), MSG_NOSIGNAL);
  _exit(0);
}

Result<void> map_ids(pid_t child) {
  std::string proc = "/proc/" + std::to_string(child);
  if (geteuid() == 0) {
    std::string map = "0 " + std::to_string(kFirstUid) + " 65536";
    ATOLL_TRY_VOID(write_file_at(AT_FDCWD, proc + "/uid_map", map));
    return write_file_at(AT_FDCWD, proc + "/gid_map", map);
  }
  // The only map that a user may write without privilege.
  ATOLL_TRY_VOID(write_file_at(AT_FDCWD, proc + "/setgroups", "deny"));
  std::string uid_map = "0 " + std::to_string(geteuid()) + " 1";
  ATOLL_TRY_VOID(write_file_at(AT_FDCWD, proc + "/uid_map", uid_map));
  std::string gid_map = "0 " + std::to_string(getegid()) + " 1";
  return write_file_at(AT_FDCWD, proc + "/gid_map", gid_map);
}

Result<void> read_answer(int socket) {
  pollfd waiting = {.fd = socket, .events = POLLIN, .revents = 0};
  if (poll(&waiting, 1, kTrialTimeoutMs) == 0)
    return Error(Code::kTimeout, "the trial did not end", ETIMEDOUT);
  char bytes[1024];
  ssize_t count = recv(socket, bytes, sizeof bytes, 0);
  if (count <= 0) return Error::from_errno("the trial died", ECHILD);
  std::string_view answer(bytes, static_cast<size_t>(count));
  size_t line = answer.find('\n');
  if (line == answer.npos) return Error(Code::kCorrupt, "the trial gave no answer");
  if (line + 1 == answer.size()) return {};
  int number = 0;
  std::from_chars(answer.data(), answer.data() + line, number);
  return Error(Code::kSystem, std::string(answer.substr(line + 1)), number);
}

// Nothing about what was to be tried is known when its place cannot be had.
Error not_tried(const Error& error) {
  return Error(Code::kUnavailable, "not tried: " + error.message(), error.system_errno());
}

Result<void> direct_child(int socket, const TrialPlace& place, pid_t child) {
  if ((place.namespaces & CLONE_NEWUSER) != 0) {
    Result<void> mapped = map_ids(child);
    if (!mapped) return not_tried(mapped.error());
  }
  if (place.beside) ATOLL_TRY_VOID(place.beside(child));
  ATOLL_TRY_VOID(linux::send_byte(socket, kGo));
  return read_answer(socket);
}

}  // namespace

Result<void> run_trial(const TrialPlace& place, const std::function<Result<void>()>& work) {
  ATOLL_TRY(auto pair, linux::make_socket_pair(SOCK_SEQPACKET));
  auto child = linux::clone_process({.flags = place.namespaces, .cgroup = place.cgroup});
  if (!child) return not_tried(child.error());
  if (child->in_child()) {
    pair.ours.reset();
    run_child(pair.theirs.get(), place, work);
  }
  pair.theirs.reset();
  Result<void> result = direct_child(pair.ours.get(), place, child->pid);
  // It ends by itself after its answer; the signal is for all other cases and never hurts.
  if (kill(child->pid, SIGKILL) != 0) return Error::system("end the trial");
  ATOLL_TRY([[maybe_unused]] int status, linux::wait_for_exit(child->pidfd.get()));
  return result;
}

FindingState state_after(const Result<void>& trial) {
  if (trial) return FindingState::kOk;
  if (trial.error().code() == Code::kUnavailable) return FindingState::kUnknown;
  int number = trial.error().system_errno();
  bool refused = number == EPERM || number == EACCES;
  return refused && geteuid() != 0 ? FindingState::kUnknown : FindingState::kMissing;
}

Finding judge(const TrialReading& reading, const Result<void>& trial) {
  Finding finding = {.name = reading.name,
                     .kind = reading.kind,
                     .state = state_after(trial),
                     .found = reading.found,
                     .remedy = ""};
  if (finding.state == FindingState::kOk) return finding;
  finding.found = trial.error().message();
  if (finding.state == FindingState::kMissing) finding.remedy = reading.remedy;
  // What root cannot try for want of something else is cured with that.
  if (finding.state == FindingState::kUnknown && geteuid() != 0) finding.remedy = kAskAsRoot;
  return finding;
}

}  // namespace atl::cli
