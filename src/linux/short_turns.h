// How the scheduler treats this thread.
#pragma once

#include "base/result.h"

namespace atl::linux {

// Asks for short turns on a processor, and so for earlier ones: for a thread that does a little for
// many, each of whom waits for it. Its share stays what it is. Kernels before 6.12 let it be.
Result<void> take_short_turns();

}  // namespace atl::linux
