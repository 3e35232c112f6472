// openat2(2): opening with a say in how the path is resolved.
#pragma once

#include <linux/openat2.h>

#include <cstdint>
#include <string>

#include "base/fd.h"

namespace atl::linux {

struct OpenHow {
  int flags = 0;         // O_CLOEXEC is always added
  unsigned mode = 0;     // of a new file
  uint64_t resolve = 0;  // RESOLVE_*
};

// Not valid on failure; errno says why. Tries again when a rename nearby has disturbed a resolution
// that must stay beneath (EAGAIN).
Fd open_resolved(int directory, const std::string& path, const OpenHow& how);

}  // namespace atl::linux
