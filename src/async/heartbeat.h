// The heartbeat of a process whose main loop is an io_context.
#pragma once

#include "async/task.h"
#include "linux/heartbeat.h"

namespace atl {

// Answers whoever asks, for the life of the process. On the thread of the main loop.
Task<void> keep_beating(linux::Heartbeat heartbeat);

}  // namespace atl
