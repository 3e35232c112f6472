// What isolates use now. A driver that can tell is one of these too.
#pragma once

#include "async/task.h"
#include "base/ids.h"
#include "base/result.h"
#include "linux/resource_usage.h"

namespace atl::isolate {

class Meter {
 public:
  virtual ~Meter() = default;
  // Of the programs inside.
  virtual Task<Result<linux::ResourceUsage>> usage(SandboxId id) = 0;
};

}  // namespace atl::isolate
