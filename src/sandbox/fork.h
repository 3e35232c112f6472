// Fork: new sandboxes that begin with the files of one that lives, and share their blocks until one
// of them writes. Processes do not come along; contexts start again with their language, directory
// and variables.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sandbox/sandboxes.h"
#include "sandbox/snapshots.h"

namespace atl::sandbox {

inline constexpr uint32_t kMaxForks = 100;

// What the new sandboxes do not have.
struct NotCarried {
  enum class What : unsigned char { kExec, kContextState };
  What what;
  std::string id;
};

struct Forked {
  std::vector<std::shared_ptr<Sandbox>> sandboxes;
  std::vector<NotCarried> not_carried;
  std::chrono::microseconds frozen;  // how long the first one stood still
};

// All of them or none.
Task<Result<Forked>> fork_sandbox(Sandboxes& sandboxes, Snapshots& snapshots,
                                  std::shared_ptr<Sandbox> sandbox, uint32_t count);

}  // namespace atl::sandbox
