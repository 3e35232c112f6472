// Event: coroutines wait, somebody wakes them all. There is no memory: who waits must check its
// condition before and after, as with a condition variable. One thread. A waiter may outlive the
// event; nobody wakes it then.
#pragma once

#include <chrono>
#include <list>
#include <memory>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "async/task.h"

namespace atl {

class Event {
 public:
  explicit Event(boost::asio::any_io_executor executor);

  // For work that goes on whatever becomes of its caller: cannot be cancelled.
  Task<void> wait();
  // False when the time ran out first or the coroutine is cancelled: also when that came earlier,
  // while it waited for nothing.
  Task<bool> wait_until(std::chrono::steady_clock::time_point deadline);
  void notify_all();

 private:
  struct Waiters {
    std::list<boost::asio::steady_timer*> timers;
    unsigned long generation = 0;
  };
  class Waiter;

  boost::asio::any_io_executor executor_;
  std::shared_ptr<Waiters> waiters_;  // shared with those who wait
};

}  // namespace atl
