// Event: coroutines wait, somebody wakes them all. There is no memory: who waits must check its
// condition before and after, as with a condition variable. One thread.
#pragma once

#include <chrono>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "isolate/task.h"

namespace atl {

class Event {
 public:
  explicit Event(boost::asio::any_io_executor executor);

  Task<void> wait();
  // False when the time ran out first.
  Task<bool> wait_until(std::chrono::steady_clock::time_point deadline);
  void notify_all();

 private:
  boost::asio::any_io_executor executor_;
  boost::asio::steady_timer never_;
  unsigned long generation_ = 0;
};

}  // namespace atl
