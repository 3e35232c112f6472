#include "linux/signals.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace atl::linux {
namespace {

// The kernel's own struct, not the C library's. All zero: SIG_DFL, no flags, empty mask.
struct KernelAction {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)();
  uint64_t mask;
};

}  // namespace

Result<void> reset_signals() {
  KernelAction fresh = {};
  for (int number = 1; number <= 64; ++number) {
    if (number == SIGKILL || number == SIGSTOP) continue;
    if (syscall(SYS_rt_sigaction, number, &fresh, nullptr, sizeof fresh.mask) != 0)
      return Error::system("reset signal " + std::to_string(number));
  }
  uint64_t none = 0;
  if (syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, sizeof none) != 0)
    return Error::system("unblock signals");
  return {};
}

}  // namespace atl::linux
