// HostFacts: settings of the whole host that no sandbox may change: the programs that the kernel
// starts, its name, its clock, its modules and its mounts; and that the host can still make what a
// sandbox could use up.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace atl::cli::selftest {

struct FactChanges {
  std::vector<std::string> settings = {};
  std::vector<std::string> mounts_and_clock = {};  // others on this host change these, too
};

class HostFacts {
 public:
  static Result<HostFacts> read();
  // What differs from the last look.
  Result<FactChanges> take_changes();

 private:
  HostFacts() = default;

  std::map<std::string, std::string> facts_;
  std::chrono::nanoseconds clock_offset_{0};
};

// What the host cannot make any more: an inotify instance, a terminal, a socket, asynchronous I/O,
// a process.
std::vector<std::string> find_used_up();

}  // namespace atl::cli::selftest
