// Supervisor: keeps a fixed set of programs alive. Each program proves that it lives by a lock it
// holds on a file of its own, so a supervisor that was killed leaves them running and the next one
// adopts them instead of starting a second copy.
//
// Single thread, blocks in run(). Reaps every child of the process, also those it inherits as a
// subreaper.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "cli/log_file.h"
#include "cli/process.h"
#include "cli/restart_delay.h"

namespace atl::cli {

struct SupervisedProgram {
  std::string name;
  std::string path;
  std::vector<std::string> arguments;  // after the name
  std::optional<Identity> identity;    // none: as the supervisor itself
  std::string lock_path;
  std::string log_path;  // empty: the supervisor's own standard error
};

class Supervisor {
 public:
  // Opens every program and log, so that a missing binary fails here and not in a restart loop.
  static Result<Supervisor> create(std::vector<SupervisedProgram> programs);

  // Starts or adopts the programs in order and keeps them alive until SIGTERM or SIGINT, which the
  // caller must not have handled otherwise; then ends them in reverse order.
  Result<void> run();

 private:
  struct Child {
    SupervisedProgram program;
    Fd binary;
    std::optional<LogFile> log;
    RestartDelay delay;
    pid_t pid = 0;  // 0: not running
    Fd pidfd;
    bool adopted = false;
    SteadyTime started_at;
    SteadyTime restart_at;
  };

  explicit Supervisor(std::vector<Child> children) : children_(std::move(children)) {}

  void start_due();
  Result<bool> adopt(Child& child);
  void note_end(Child& child, std::optional<int> status);
  void reap();
  void find_ended_adopted();
  void rotate_logs();
  std::chrono::milliseconds time_to_next_event() const;
  Result<void> watch_until_asked_to_stop(int signals);
  Result<void> stop();

  std::vector<Child> children_;
  SteadyTime next_rotation_;
};

}  // namespace atl::cli
