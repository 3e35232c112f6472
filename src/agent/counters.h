// What the kernel counts about memory and processes of the whole sandbox, read from the descriptors
// that the agent was born with. Exec reads the same of its own leaf where the host can tell.
//
// The kernel raises its count of memory kills before it sends the signal, so a count that is read
// after the victim was reaped includes its kill.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "agent/leaf.h"
#include "base/fd.h"
#include "base/result.h"

namespace atl::agent {

// The number at the start of a text.
std::optional<uint64_t> parse_count(std::string_view text);
// The number after "<key> " at the start of a line.
std::optional<uint64_t> find_count(std::string_view text, std::string_view key);

// What had been counted at one moment.
struct Counts {
  uint64_t memory_kills = 0;
  uint64_t explained_kills = 0;  // of these: kills whose exec is known
  uint64_t refused_forks = 0;
};

// Whether each exec's leaf has counters of memory and processes of its own: not where those are in
// v1 groups.
enum class OfLeaves : uint8_t { kCounted, kNotCounted };

class Counters {
 public:
  // `memory_peak` may be missing.
  static Result<Counters> create(Fd memory_events, Fd pids_events, Fd memory_peak,
                                 OfLeaves of_leaves);

  Counts read() const;
  // Since `before` was read, to a process of the leaf.
  bool refused_a_fork(const Counts& before, const Leaf& leaf) const;
  bool of_leaves() const { return of_leaves_ == OfLeaves::kCounted; }
  // Of all processes together, since the sandbox was made; nothing where the host does not know.
  std::optional<uint64_t> peak_memory_bytes() const;
  // One more of the kills belongs to an exec: no other exec needs to be suspected of it.
  void explain_kill() { ++explained_kills_; }

 private:
  Counters(Fd memory_events, Fd pids_events, Fd memory_peak, OfLeaves of_leaves);

  Fd memory_events_;
  Fd pids_events_;
  Fd memory_peak_;
  OfLeaves of_leaves_;
  uint64_t explained_kills_ = 0;
};

}  // namespace atl::agent
