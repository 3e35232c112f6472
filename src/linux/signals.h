// Signal dispositions and mask as a fresh process has them: see signal(7). Both survive execve, and
// whoever started us may have ignored or blocked any of them.
#pragma once

#include "base/result.h"

namespace atl::linux {

// Default action for every signal, also 32 and 33, which the C library keeps for threads and does
// not let anybody change; then none is blocked.
Result<void> reset_signals();

}  // namespace atl::linux
