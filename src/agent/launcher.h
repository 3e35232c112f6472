// Starts programs: pipes, a leaf, and the clone, by the agent itself or through the spawner.
#pragma once

#include <sys/resource.h>

#include <string_view>

#include "agent/exec.h"
#include "agent/spawner.h"

namespace atl::agent {

class Launcher {
 public:
  // Raises the limit of open files, for the pipes of many execs; programs get the old one. Without
  // a spawner the agent clones by itself.
  static Result<Launcher> create(Fd spawner_socket);

  // An error names the operation alone, as StartFailed does. The leaf may be there after an error,
  // and even a process in it.
  // `standard_input` stays the caller's.
  Result<Launched> launch(const Leaf& leaf, const Start& start, std::string_view start_payload,
                          int standard_input);

  int null_device() const { return null_device_.get(); }

 private:
  Launcher() = default;
  Result<void> check_spare_descriptors(int highest) const;
  Result<Launched> clone_into(const Start& start, std::string_view start_payload,
                              const StartFds& fds);

  Fd null_device_;
  Fd file_rules_;
  rlimit programs_files_ = {};
  rlimit own_files_ = {};
  bool has_spawner_ = false;
  Spawner spawner_;
};

}  // namespace atl::agent
