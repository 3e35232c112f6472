// Progress of one launch, in memory shared by the helper and the processes it clones: which step
// each is in, when it began, and why it failed. A process that dies without a word still leaves its
// last step here.
#pragma once

#include <array>
#include <cerrno>
#include <cstdint>

#include "base/clock.h"
#include "base/result.h"
#include "linux/shared_page.h"
#include "warden/protocol.h"

namespace atl::warden {

struct Progress {
  Step step;             // of the process that becomes the agent
  int32_t failed_errno;  // 0: has not failed
  Step failed_step;
  int32_t jail_pid;    // said by the process that cloned it for the helper,
  int32_t jail_pidfd;  // whose descriptors it shares
  std::array<uint32_t, kLastStep + 1> elapsed_us;  // spent in each step, both sides added

  // The first failure is the one to keep: it may have brought about the others.
  void note_failure(Step where, const Error& error) {
    if (failed_errno != 0) return;
    failed_step = where;
    failed_errno = error.system_errno() != 0 ? error.system_errno() : EPROTO;
  }
};

using SharedProgress = linux::SharedPage<Progress>;

// Adds the time of its life to one step.
class StepTimer {
 public:
  StepTimer(Progress& progress, Step step)
      : total_us_(progress.elapsed_us[static_cast<size_t>(step)]),
        begin_(std::chrono::steady_clock::now()) {}
  ~StepTimer() {
    using std::chrono::microseconds;
    auto spent = std::chrono::steady_clock::now() - begin_;
    total_us_ += static_cast<uint32_t>(std::chrono::duration_cast<microseconds>(spent).count());
  }
  StepTimer(const StepTimer&) = delete;
  StepTimer& operator=(const StepTimer&) = delete;

 private:
  uint32_t& total_us_;
  SteadyTime begin_;
};

}  // namespace atl::warden
