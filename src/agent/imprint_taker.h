// Takes the imprint of a program: stops it, has it tell by its own system calls what only it can
// ask, reads its memory from outside, and ends it. For a process of its own, which is a tracer and
// may be held up by whoever reads.
#pragma once

#include <sys/types.h>

#include "base/result.h"

namespace atl::agent {

// Writes the imprint of `pid`, which must wait in a read of `control` and have one thread, to
// `output`. kUnsupported says what about the program cannot be copied; then nothing was written.
Result<void> take_imprint(pid_t pid, int control, int output);

}  // namespace atl::agent
