// The cgroup of one exec: `<n>` beneath the directory that the warden delegated. Everything the
// program ever forks is in it, so one write ends them all, and the directory is empty when the last
// is gone.
//
// Named by its number and not held open, so that an exec costs no descriptor for it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace atl::agent {

// Whether a program in the leaf may still have others started there (sudo): not after a kill, which
// they would survive.
enum class Joining : uint8_t { kAllowed, kRefused };

struct LeafTimes {
  uint64_t user_us = 0;
  uint64_t system_us = 0;
};

class Leaf {
 public:
  Leaf(int parent_directory, uint32_t number) : parent_(parent_directory), number_(number) {}

  Result<void> create() const;
  Result<Fd> open_directory() const;
  Result<void> limit_processes(uint32_t most) const;
  // SIGKILL to every process in it; also to those that are just being forked.
  Result<void> kill() const;
  Result<void> freeze() const;
  Result<void> thaw() const;

  enum class Removal : uint8_t { kRemoved, kPopulated, kBusy };
  // kBusy: no live process is left, but the kernel still holds the directory; try again soon.
  Removal remove() const;

  // One of its control files; an error where the host's leaves have no such file.
  Result<std::string> read(const char* file) const;

  Result<std::vector<pid_t>> processes() const;
  // Processor time of all processes that were ever in it; nothing where the kernel does not know.
  std::optional<LeafTimes> times() const;
  // Of those that are in it now, and of what they waited for.
  LeafTimes live_times() const;

  // Turns readable (POLLPRI) when the leaf becomes empty or stops being so.
  Result<Fd> open_events() const;

  uint32_t number() const { return number_; }

 private:
  int parent_;
  uint32_t number_;
};

}  // namespace atl::agent
