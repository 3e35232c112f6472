// `atoll restart`: asks the supervisor to run the programs that are installed now and tells how it
// went. The supervisor does all of it (supervisor.h), so it goes on when this command is ended.
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <boost/json/parse.hpp>

#include "base/file.h"
#include "cli/host.h"
#include "cli/host_commands.h"
#include "cli/log_file.h"
#include "cli/readable.h"
#include "cli/replacement.h"
#include "cli/state_directory.h"
#include "linux/heartbeat.h"
#include "linux/lock_file.h"
#include "linux/pidfd.h"

namespace atl::cli {
namespace {

// Two programs that end by force, twice, and do not become ready.
constexpr std::chrono::seconds kPatience{120};
constexpr std::chrono::milliseconds kPoll{10};
// Its loop comes by every second, unless it is ending or starting something.
constexpr std::chrono::milliseconds kAnswerTime{10'000};
constexpr std::chrono::milliseconds kQuietTime{5'000};
constexpr size_t kShownLogLines = 5;

Error hung(const linux::LockHolder& supervisor) {
  std::string pid = std::to_string(supervisor.pid);
  return Error(Code::kTimeout, "the supervisor (process " + pid +
                                   ") does not answer; sandboxes go on\n  remedy: kill -9 " + pid +
                                   ", then atoll up, which takes up what runs");
}

Result<std::string> wait_for_account(const Places& places, const linux::LockHolder& supervisor) {
  auto began = std::chrono::steady_clock::now();
  auto tell_at = began + kQuietTime;
  while (std::chrono::steady_clock::now() < began + kPatience) {
    if (std::chrono::steady_clock::now() >= tell_at) {
      fprintf(stderr, "atoll: waiting for the supervisor (process %d)\n", supervisor.pid);
      tell_at += kQuietTime;
    }
    auto text = read_file(places.replacement());
    if (text) return text;
    if (text.error().system_errno() != ENOENT) return text;
    ATOLL_TRY(bool ended, wait_for_end(supervisor.pidfd.get(), kPoll));
    if (ended)
      return Error(Code::kUnavailable,
                   "the supervisor ended; what runs goes on\n  remedy: atoll up");
  }
  return hung(supervisor);
}

Result<std::string> ask_supervisor(const Places& places, const RestartCommand& restart) {
  ATOLL_TRY(Identity daemon, find_daemon_identity());
  ATOLL_TRY(std::optional<linux::LockHolder> supervisor, Host(places, "", daemon).supervisor());
  if (!supervisor)
    return Error(Code::kNotFound, "Atoll is not up in " + places.state + "\n  remedy: atoll up");
  // One of an earlier release has no heartbeat, and replaces itself all the same.
  auto answered = linux::ask_heartbeat(places.run, kSupervisorName, kAnswerTime);
  if (!answered && answered.error().code() == Code::kTimeout) return hung(*supervisor);
  // One at a time: the account is in one file.
  ATOLL_TRY([[maybe_unused]] linux::LockFile lock,
            linux::LockFile::acquire(places.state + "/restart.lock"));
  if (unlink(places.replacement().c_str()) != 0 && errno != ENOENT)
    return Error::system("remove " + places.replacement());
  ATOLL_TRY_VOID(
      linux::queue_signal(supervisor->pidfd.get(), SIGHUP, static_cast<int>(restart.what)));
  return wait_for_account(places, *supervisor);
}

void show_logs(const Places& places, const Replacement& replacement) {
  for (const ReplacedProgram& program : replacement.programs) {
    std::string path = places.logs() + "/" + program.name + ".log";
    if (access(path.c_str(), F_OK) != 0) continue;
    std::string lines = escape_controls(last_lines(path, kShownLogLines));
    fprintf(stderr, "--- %s\n%s\n", path.c_str(), lines.c_str());
  }
}

Error failure_of(const Replacement& replacement) {
  std::string message = "what is installed now was not started: " + replacement.failure;
  switch (replacement.outcome) {
    case Replacement::Outcome::kRefused:
      return Error(Code::kUnsupported, message + "; what ran before goes on untouched");
    case Replacement::Outcome::kWentBack:
      return Error(Code::kUnavailable,
                   "what is installed now did not become ready: " + replacement.failure +
                       "; what ran before runs again\n  remedy: install that again, or repair "
                       "this and repeat atoll restart");
    default:
      return Error(
          Code::kUnavailable,
          "neither what is installed now nor what ran before became ready: " + replacement.failure +
              "; sandboxes go on and starts are repeated\n"
              "  remedy: install a version that knows this state, then atoll restart");
  }
}

void print_text(const Replacement& replacement) {
  for (const ReplacedProgram& program : replacement.programs)
    printf("%-14s %s -> %s (process %d)\n", program.name.c_str(),
           program.before.empty() ? "unknown" : escape_controls(program.before).c_str(),
           escape_controls(program.after).c_str(), program.pid);
  printf("ready again after %lld ms; sandboxes and what runs in them went on\n",
         static_cast<long long>(replacement.unavailable.count()));
}

}  // namespace

Result<int> run_command(const CommandLine& line, const RestartCommand& restart) {
  if (geteuid() != 0) return Error(Code::kDenied, "atoll restart must run as root");
  ATOLL_TRY(std::string text, ask_supervisor(line.places, restart));
  ATOLL_TRY(Replacement replacement, decode_replacement(text));
  if (replacement.outcome != Replacement::Outcome::kDone) {
    show_logs(line.places, replacement);
    return failure_of(replacement);
  }
  if (line.format == Format::kJson)
    print_json(boost::json::parse(text));
  else
    print_text(replacement);
  return 0;
}

}  // namespace atl::cli
