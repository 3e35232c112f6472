// InterruptGuard: while it lives, SIGINT and SIGTERM run a clean-up before they end the process,
// also when the main thread is inside a blocking call. The clean-up runs on a thread of its own.
#pragma once

#include <signal.h>

#include <functional>
#include <mutex>
#include <thread>

namespace atl::cli {

class InterruptGuard {
 public:
  // Before any other thread exists, so that all inherit the blocked signals.
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  void on_interrupt(std::function<void(int signal_number)> clean_up);
  // Never returns once a clean-up has begun: what it did to the command is not worth telling.
  void settle() { std::lock_guard lock(mutex_); }

 private:
  void wait();

  sigset_t before_;
  std::mutex mutex_;
  std::function<void(int signal_number)> clean_up_;
  std::thread thread_;
};

}  // namespace atl::cli
