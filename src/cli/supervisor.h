// Supervisor: keeps a fixed set of programs alive. Each program proves that it lives by a lock it
// holds on a file of its own, so a supervisor that was killed leaves them running and the next one
// adopts them instead of starting a second copy. That its main loop turns it proves by a heartbeat
// (linux/heartbeat.h): one that does not is killed, which every program of ours stands, and started
// again.
//
// Single thread, blocks in run() and replace(). Reaps every child of the process, also those it
// inherits as a subreaper.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/lived_time.h"
#include "base/result.h"
#include "cli/log_file.h"
#include "cli/process.h"
#include "cli/replacement.h"
#include "cli/restart_delay.h"
#include "linux/heartbeat.h"

namespace atl::cli {

// A program that has not answered for so long is killed. Longer than any step of its loop takes on
// a busy host.
inline constexpr std::chrono::milliseconds kMostSilence{10'000};
// So long it may take to begin to answer, with a pool to repair or rows to bring up to date.
inline constexpr std::chrono::milliseconds kMostStartTime{300'000};

struct SupervisedProgram {
  std::string name;
  std::string path;
  std::vector<std::string> arguments;  // after the name
  std::optional<Identity> identity;    // none: as the supervisor itself
  std::string lock_path;
  std::string log_path;  // empty: the supervisor's own standard error
  // Removed once it has ended for another, so that its being there says that the next one serves.
  std::string socket_path = {};
  std::vector<std::string> environment = {};  // NAME=VALUE
  bool can_check = false;                // --check, with its arguments, says whether it could serve
  std::string heartbeat_directory = {};  // where it answers; empty: it is not asked
  std::chrono::milliseconds most_silence = kMostSilence;
};

// What a signal asked of the supervisor. SIGTERM and SIGINT: to stop. SIGHUP, unless it is the
// kernel's for a closed terminal: to run what is installed now; queued with a number, only the
// programs whose bits are set in it.
struct Asked {
  enum class What : unsigned char { kNothing, kReplace, kStop } what = What::kNothing;
  int programs = 0;
};

class Supervisor {
 public:
  // Opens every program and log, so that a missing binary fails here and not in a restart loop.
  static Result<Supervisor> create(std::vector<SupervisedProgram> programs);

  // Called in every turn of the loop, and between steps that may take long: about every second,
  // and at least every half minute; also when `wake` is readable, which stays the caller's.
  void set_on_turn(std::function<void()> on_turn, int wake) {
    on_turn_ = std::move(on_turn);
    wake_ = wake;
  }

  // Starts or adopts the programs in order and keeps them alive until a signal asks for something
  // else; the caller must not have handled it otherwise. When asked to stop it has ended them, in
  // reverse order.
  Result<Asked> run();

  // Ends the programs of `names` and starts what is installed now; if that is not `ready` in time,
  // what ran before is started again. A program that does not run, or says to --check that it
  // cannot serve what is here, is found before anything is ended.
  struct Wish {
    std::vector<std::string> names;
    std::function<Result<void>()> ready;
    std::chrono::milliseconds patience{10'000};
  };
  Replacement replace(const Wish& wish);

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
    std::optional<linux::HeartbeatWatch> heartbeat;
    bool is_installed = true;  // `binary` is; of one that it went back to nothing is known
    bool is_current = false;   // what runs was started here, from what is installed
  };

  explicit Supervisor(std::vector<Child> children);

  // What a child is, so that it can be started again after its file was replaced.
  struct Before {
    Child* child;
    Fd binary;
    std::vector<std::string> arguments;
  };

  Result<std::string> release_of(const Child& child, int binary) const;
  Result<void> check_installed(const Child& child) const;
  Result<std::vector<Before>> prepare(const Wish& wish, Replacement& replacement);
  Result<void> exchange(const std::vector<Child*>& children);
  Result<void> wait_ready(const std::vector<Child*>& children, const Wish& wish);
  void start_due();
  void start(Child& child);
  Result<bool> adopt(Child& child);
  void note_end(Child& child, std::optional<int> status);
  void reap();
  void find_ended_adopted();
  void end_silent();
  void turn();
  void rotate_logs();
  std::chrono::milliseconds time_to_next_event() const;
  Result<Asked> watch_until_asked(int signals);
  Result<void> stop();

  std::vector<Child> children_;
  SteadyTime next_rotation_, next_look_;
  LivedTime lived_;
  std::function<void()> on_turn_;
  int wake_ = -1;
};

}  // namespace atl::cli
