// `atoll down`: asks the supervisor to stop, and does itself whatever no supervisor is left to do.
#include <stdio.h>
#include <unistd.h>

#include "cli/host.h"
#include "cli/host_commands.h"
#include "cli/state_directory.h"
#include "linux/lock_file.h"

namespace atl::cli {
namespace {

// atolld and the warden have 10 s each, the removal of all isolates a minute.
constexpr std::chrono::milliseconds kSupervisorStopTime{120'000};

struct Done {
  bool stopped_supervisor = false;
  std::vector<std::string> ended;  // processes without a supervisor
  bool removed_remains = false;
};

Result<Done> take_down(const Places& places, const Host& host) {
  Done done;
  ATOLL_TRY(std::optional<linux::LockHolder> supervisor, host.supervisor());
  if (supervisor) {
    ATOLL_TRY(Ended how, end_process(supervisor->pidfd.get(), kSupervisorStopTime));
    if (how == Ended::kByForce) fprintf(stderr, "atoll: the supervisor had to be killed\n");
    done.stopped_supervisor = true;
  }
  // Whatever happened to the supervisor: nothing may be left, and no other `up` may start
  // meanwhile.
  ATOLL_TRY([[maybe_unused]] linux::LockFile lock,
            linux::LockFile::acquire(places.supervisor_lock()));
  ATOLL_TRY(done.ended, host.end_processes());
  ATOLL_TRY(done.removed_remains, host.remove_remains());
  return done;
}

void report_text(const Done& done, const std::string& state) {
  if (done.stopped_supervisor) printf("Atoll is down (the supervisor stopped everything)\n");
  for (const std::string& name : done.ended)
    printf("stopped %s, which had no supervisor\n", name.c_str());
  if (done.removed_remains) printf("removed what was left of an earlier run\n");
  if (!done.stopped_supervisor && done.ended.empty() && !done.removed_remains)
    printf("nothing was running in %s\n", state.c_str());
}

void report_json(const Done& done) {
  std::string names;
  for (const std::string& name : done.ended) names += (names.empty() ? "\"" : ",\"") + name + "\"";
  printf("{\"stopped_supervisor\":%s,\"stopped\":[%s],\"removed_remains\":%s}\n",
         done.stopped_supervisor ? "true" : "false", names.c_str(),
         done.removed_remains ? "true" : "false");
}

}  // namespace

Result<int> run_command(const CommandLine& line, const DownCommand&) {
  if (geteuid() != 0) return Error(Code::kDenied, "atoll down must run as root");
  Done done;
  if (access(line.places.state.c_str(), F_OK) == 0) {
    ATOLL_TRY(Identity daemon, find_daemon_identity());
    ATOLL_TRY(std::string binaries, find_binaries());
    ATOLL_TRY(done, take_down(line.places, Host(line.places, binaries, daemon)));
  }
  if (line.format == Format::kJson)
    report_json(done);
  else
    report_text(done, line.places.state);
  return 0;
}

}  // namespace atl::cli
