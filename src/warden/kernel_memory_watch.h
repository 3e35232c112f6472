// KernelMemoryWatch: finds the sandbox that makes the kernel's memory grow which no limit counts
// (file locks, for one: Linux knows no limit for them), and says what to do about it. It is a
// decision alone: it reads nothing and ends nobody.
//
// It does not guess from what is seen of a sandbox; it tries. When the host's kernel memory has
// grown by `growth_bytes` more than what groups are charged for, the sandboxes that are busiest in
// the kernel are stopped, one after the other, until the growth stops. Then they go on, one at a
// time, and the one with which the growth comes back, stops and comes back kProofs times is the one
// to end. If it does not stop, it is the host's own: all go on and nobody is ended.
//
// What stays unsure: somebody else's memory may grow just when the one under trial goes on and
// stand still just when it is stopped, kProofs times in a row. What grows more slowly than
// kDriftBytesPerSecond is taken for the host's own.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"

namespace atl::warden {

inline constexpr uint64_t kDriftBytesPerSecond = 64 * 1024;
inline constexpr int kProofs = 5;
// That are stopped at the same time.
inline constexpr size_t kMaxSuspects = 32;

struct KernelMemory {
  uint64_t unreclaimable_bytes = 0;  // of the whole host
  uint64_t charged_bytes = 0;        // kernel memory that the groups of sandboxes are charged for
  uint64_t uncharged() const {
    return unreclaimable_bytes > charged_bytes ? unreclaimable_bytes - charged_bytes : 0;
  }
};

struct Suspect {
  SandboxId id;
  uint64_t system_us;  // in the kernel, since it was launched
};

struct WatchOrder {
  enum class What : unsigned char { kStop, kGoOn, kEnd };
  What what;
  SandboxId id;
};

class KernelMemoryWatch {
 public:
  explicit KernelMemoryWatch(uint64_t growth_bytes);

  // To be called every pause(); with all sandboxes when it wants them.
  std::vector<WatchOrder> look(SteadyTime now, const KernelMemory& memory,
                               const std::vector<Suspect>& suspects);
  bool wants_suspects() const { return state_ != State::kCalm; }
  std::chrono::milliseconds pause() const;
  // An order to stop it could not be carried out: somebody else works on it, or has stopped it.
  void pass_over(const SandboxId& id);

 private:
  enum class State : unsigned char { kCalm, kMeasuring, kStopping, kGoingOn, kSettling };
  // What is compared with what comes after it.
  struct Mark {
    SteadyTime at;
    uint64_t bytes = 0;
    std::map<SandboxId, uint64_t> system_us;
  };
  using Orders = std::vector<WatchOrder>;

  void follow_drift(SteadyTime now, uint64_t bytes);
  bool is_over(uint64_t bytes) const { return bytes > usual_bytes_ + growth_bytes_; }
  void set_mark(SteadyTime now, uint64_t bytes, const std::vector<Suspect>& suspects);
  double elapsed_ms(SteadyTime now) const;
  double grown(uint64_t bytes) const;
  bool is_up(SteadyTime now) const;
  void take_speed(SteadyTime now, uint64_t bytes);

  Orders measure(SteadyTime now, uint64_t bytes, const std::vector<Suspect>& suspects);
  Orders stop_next(SteadyTime now, uint64_t bytes, const std::vector<Suspect>& suspects);
  Orders judge_stop(SteadyTime now, uint64_t bytes, const std::vector<Suspect>& suspects);
  Orders let_next_go_on(SteadyTime now, uint64_t bytes);
  Orders judge_going_on(SteadyTime now, uint64_t bytes, const std::vector<Suspect>& suspects);
  Orders give_up(uint64_t bytes);
  Orders all_go_on();

  const uint64_t growth_bytes_;
  const double step_bytes_;  // grown by so much, it grows
  State state_ = State::kCalm;
  bool has_looked_ = false;
  bool has_mark_ = false;
  SteadyTime last_look_, last_progress_;
  double usual_bytes_ = 0;
  Mark mark_;
  double bytes_per_ms_ = 0;  // before the last one was stopped
  double trial_ms_ = 0;
  std::vector<SandboxId> stopped_;  // in the order in which they were
  std::set<SandboxId> passed_over_;
  std::optional<SandboxId> on_trial_;  // the one that goes on
  int proofs_ = 0;                     // against that one
};

}  // namespace atl::warden
