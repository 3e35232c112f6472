// A process that is stopped and looked at: see ptrace(2). It dies when this process lets go of it.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <cstdint>

#include "base/result.h"

namespace atl::linux {

class TracedProcess {
 public:
  // Stops it.
  static Result<TracedProcess> stop(pid_t pid);

  const user_regs_struct& registers() const { return registers_; }
  // Has it make a system call at the instruction of the one that it was stopped in. The result, or
  // the error that the kernel gave it.
  struct Call {
    long number;
    uint64_t first = 0, second = 0, third = 0, fourth = 0;
  };
  Result<uint64_t> call(const Call& call);
  Result<uint64_t> signal_mask() const;

  struct RestartableSequence {
    uint64_t address;
    uint32_t bytes, signature;
  };
  Result<RestartableSequence> restartable_sequence() const;

 private:
  explicit TracedProcess(pid_t pid) : pid_(pid) {}
  pid_t pid_;
  user_regs_struct registers_ = {};
};

}  // namespace atl::linux
