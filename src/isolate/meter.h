// The part of a driver that tells what its isolates use.
#pragma once

#include "async/task.h"
#include "base/ids.h"
#include "base/result.h"
#include "linux/resource_usage.h"

namespace atl::isolate {

class Meter {
 public:
  virtual ~Meter() = default;
  // Of the programs inside; until the isolate is removed, also when they have ended.
  virtual Task<Result<linux::ResourceUsage>> usage(SandboxId id) = 0;
};

}  // namespace atl::isolate
