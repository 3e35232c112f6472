// LimitWatch: what a kernel does for groups with limits, for one that only counts (gVisor's). It
// looks, some dozen times a second while anything runs, at what the processes of all leaves use
// together. What is used between two looks is bounded by the host's groups around the whole, which
// leave some room and then end all of it. One thread.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "agent/birth_record.h"
#include "agent/leaf.h"
#include "base/clock.h"
#include "base/fd.h"

namespace atl::agent {

class LimitWatch {
 public:
  // `refused_forks` is what Counters reads: "max <n>".
  LimitWatch(const GuestLimits& limits, Fd refused_forks,
             std::string memory_info = "/proc/meminfo");

  SteadyTime looks_at() const { return looks_at_; }
  // Gives the number of the leaf that uses most, if all together use too much memory.
  std::optional<uint32_t> look(std::span<const Leaf> leaves, SteadyTime now);
  // When a program has ended, whose forks may have been refused since the last look.
  void look_at_end(std::span<const Leaf> leaves);

 private:
  static size_t threads_in(std::span<const Leaf> leaves);
  static std::optional<uint32_t> largest(std::span<const Leaf> leaves);
  void count_refusal();

  uint64_t memory_bytes_;
  size_t processes_;
  Fd refused_forks_;
  std::string memory_info_;
  uint64_t refusals_ = 0;
  SteadyTime looks_at_;
};

}  // namespace atl::agent
