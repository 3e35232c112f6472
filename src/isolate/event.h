// Event: coroutines wait, somebody wakes them all. There is no memory: who waits must check its
// condition before and after, as with a condition variable. One thread. A waiter may outlive the
// event; nobody wakes it then.
#pragma once

#include <chrono>
#include <list>
#include <memory>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "isolate/task.h"

namespace atl {

class Event {
 public:
  explicit Event(boost::asio::any_io_executor executor);

  // False when the waiting coroutine was cancelled.
  Task<bool> wait();
  // False also when the time ran out first.
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
