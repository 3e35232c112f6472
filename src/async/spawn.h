// Operations of Boost.Asio that many files need. Each is compiled here once: the templates behind
// one call cost half a second in every unit that makes it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "async/task.h"

namespace atl {

// Runs the task on the executor. The task must own what it uses: the caller does not wait for it.
void spawn(boost::asio::any_io_executor executor, Task<void> task);

// Waits until the timer expires. False: the wait was cancelled.
Task<bool> wait(boost::asio::steady_timer& timer);

}  // namespace atl
