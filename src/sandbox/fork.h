// Fork: new sandboxes that begin with the files of one that lives, and share their blocks until one
// of them writes. Processes do not come along; contexts start again with their language, directory
// and variables.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sandbox/not_carried.h"
#include "sandbox/sandboxes.h"
#include "sandbox/snapshots.h"

namespace atl::sandbox {

inline constexpr uint32_t kMaxForks = 100;

struct Forked {
  std::vector<std::shared_ptr<Sandbox>> sandboxes;
  std::vector<NotCarried> not_carried;  // of each
  std::chrono::microseconds frozen;     // how long the first one stood still
};

struct ForkRequest {
  uint32_t count = 1;
  std::optional<uint64_t> ttl_ms = {};  // as long as the first one's if it does not say
};

// All of them or none.
Task<Result<Forked>> fork_sandbox(Sandboxes& sandboxes, Snapshots& snapshots,
                                  std::shared_ptr<Sandbox> sandbox, ForkRequest wanted);

// A create of a sandbox as that one, without its name and volumes, that begins with a snapshot.
CreateSandbox twin_request(const store::SandboxRow& row, SnapshotId snapshot);
// Another context as that one, which knows nothing.
ContextRequest context_request_of(const Context& context);

}  // namespace atl::sandbox
