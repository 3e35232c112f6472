// A child in a new user namespace by clone3(2), whose flags a filter cannot see.
// victim: id=ESC-17
#include <linux/sched.h>
#include <signal.h>

#include "victim.h"

int main(void) {
  struct clone_args arguments = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
  long child = syscall(SYS_clone3, &arguments, sizeof arguments);
  if (child == 0) _exit(0);
  int number = errno;
  if (child > 0) wait_for((pid_t)child);
  errno = number;
  attempt("clone3 user", child);
  return conclude();
}
