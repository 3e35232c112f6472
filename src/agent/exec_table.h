// All execs that the agent knows, and what ended ones left behind. Every event finds its exec here
// by number; an event for one that is gone meanwhile is nothing.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "agent/counters.h"
#include "agent/exec.h"
#include "agent/freeze_watch.h"
#include "agent/launcher.h"
#include "agent/layer_probe.h"
#include "agent/limit_watch.h"
#include "agent/oom_watch.h"
#include "agent/poll_set.h"

namespace atl::agent {

struct ReapedChild {
  pid_t pid = 0;
  int wait_status = 0;
};

// A machine may stand still as a whole, while its clock goes on and nobody inside is told; so may
// gVisor's sentry, whose groups enforce no limit of memory besides.
enum class AgentPlace : uint8_t { kJail, kMachine, kSentry };

class ExecTable {
 public:
  struct Parts {
    Fd cgroup;
    Launcher& launcher;
    Counters counters;
    OomWatch oom;
    LayerProbe layer;
    FreezeWatch freeze;
    AgentPlace place;
    std::optional<LimitWatch> limits = {};  // in a sentry
  };
  explicit ExecTable(Parts parts);

  // The birth probe, as number 0, which no exec has.
  Result<void> probe(Fd socket);
  // Starts one more program in the leaf of an exec, for one that runs there; it is no exec.
  Result<Launched> join(uint32_t number, const Start& start, const Streams& streams);
  Exec* find(uint32_t number);
  // A frame for one exec; nothing if it is not known, except a Start, which starts the program or
  // makes an exec that has failed to start. False: it breaks the protocol.
  [[nodiscard]] bool obey(const Frame& frame);
  Result<Fd> open_control(const OpenControl& open);
  // Kills what still runs.
  void forget(uint32_t number);

  // The daemon's answer to hello: goes on from its offsets and forgets what it left out. False,
  // with nothing forgotten, if it names an exec twice or one that is not here, or bytes that are
  // not here.
  bool resume(const std::vector<ExecOffsets>& execs);
  std::vector<ExecOffsets> offsets() const;
  // The next frame for the daemon; the execs take turns.
  std::optional<std::string> next_report();

  void add_watches(PollSet& polls) const;
  void handle(Watch watch);
  // Waits for one child that has ended, an exec's or not; nothing when there is none.
  std::optional<ReapedChild> reap_one();
  // Before the agent waits, with all reports sent: also removes what ended execs left behind.
  std::optional<SteadyTime> next_deadline();
  void check_deadlines();
  // Nothing runs and nothing is left to tell; kWaiting: nor is anything left of what ran, but there
  // may be programs that wait for their beginning.
  enum class Left : uint8_t { kAnything, kWaiting };
  bool is_empty(Left left) const {
    if (left == Left::kAnything) return execs_.empty();
    auto waits = [](const auto& entry) { return entry.second.state() == Exec::State::kWaits; };
    return std::all_of(execs_.begin(), execs_.end(), waits) && remains_.empty();
  }

 private:
  bool start(uint32_t number, std::string_view payload);
  void launch(uint32_t number, const Start& start, std::string_view payload);
  // A window of its output may have opened.
  void go_on(Exec& exec);
  void retire(Exec& exec);
  void keep(uint32_t number, Remains remains);
  void sweep();
  void handle_remains(Watch watch);
  Exec* find_by_pid(pid_t pid);
  void layer_answered(const LayerProbe::Answer& answer);
  void end_all_for_memory();
  std::vector<Leaf> leaves();
  void look_at_limits(SteadyTime now);
  void freeze_noticed();
  // No time has passed for any exec since then.
  void put_off(SteadyTime since, SteadyTime current);
  // What was lost of the time that the loop was to wait at most counts for nothing.
  void notice_standstill(SteadyTime now);

  Fd cgroup_;
  Launcher& launcher_;
  Counters counters_;
  OomWatch oom_;
  LayerProbe layer_;
  FreezeWatch freeze_;
  AgentPlace place_;
  std::optional<LimitWatch> limit_watch_;
  std::optional<SteadyTime> looks_at_;  // again, in a machine
  std::map<uint32_t, Exec> execs_;
  std::map<uint32_t, Remains> remains_;
  std::vector<uint32_t> unswept_;  // of these, those not looked at yet
  uint32_t last_reported_ = 0;
};

}  // namespace atl::agent
