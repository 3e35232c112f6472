#include "cli/interrupt.h"

#include <unistd.h>

#include "base/check.h"

namespace atl::cli {
namespace {

// Ends the waiting thread; nobody else sends it.
constexpr int kWakeUp = SIGUSR1;

sigset_t waited_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGINT, SIGTERM, kWakeUp}) sigaddset(&set, number);
  return set;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  sigset_t set = waited_signals();
  ATOLL_CHECK(pthread_sigmask(SIG_BLOCK, &set, &before_) == 0);
  thread_ = std::thread([this] { wait(); });
}

InterruptGuard::~InterruptGuard() {
  pthread_kill(thread_.native_handle(), kWakeUp);
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void InterruptGuard::on_interrupt(std::function<void(int signal_number)> clean_up) {
  std::lock_guard lock(mutex_);
  clean_up_ = std::move(clean_up);
}

void InterruptGuard::wait() {
  sigset_t set = waited_signals();
  int number = 0;
  while (sigwait(&set, &number) != 0) continue;
  if (number == kWakeUp) return;
  std::lock_guard lock(mutex_);
  if (clean_up_) clean_up_(number);
  _exit(128 + number);
}

}  // namespace atl::cli
