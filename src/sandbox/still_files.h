// StillFiles: the moment in which the disk of a sandbox with a kernel of its own can be kept: all
// is written to it, and whoever writes inside waits (agent/still_files.h). Its end, or the loss of
// this object, lets them go on; so does time, of which end() tells.
#pragma once

#include <memory>

#include "sandbox/sandbox.h"

namespace atl::sandbox {

class StillFiles {
 public:
  // Whether what is on its disk cannot be kept without.
  static bool are_needed(const store::SandboxRow& row) { return row.isolation != "jail"; }

  // It must be running: one that is paused cannot be asked.
  static Task<Result<std::unique_ptr<StillFiles>>> begin(std::shared_ptr<Sandbox> sandbox);
  // An error: they may have been written meanwhile.
  Task<Result<void>> end();

 private:
  StillFiles(std::shared_ptr<Sandbox> sandbox, std::unique_ptr<Channel> channel)
      : sandbox_(std::move(sandbox)), channel_(std::move(channel)) {}
  Task<Result<void>> expect(std::string_view word, std::chrono::seconds patience);

  std::shared_ptr<Sandbox> sandbox_;  // the channel needs its talk
  std::unique_ptr<Channel> channel_;
};

}  // namespace atl::sandbox
