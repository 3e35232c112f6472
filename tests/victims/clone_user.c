// A child in a new user namespace by clone(2).
// victim: id=ESC-17
#include <sched.h>
#include <signal.h>

#include "victim.h"

static void try_flags(const char* what, unsigned long flags) {
  long child = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
  if (child == 0) _exit(0);
  int number = errno;
  if (child > 0) wait_for((pid_t)child);
  errno = number;
  attempt(what, child);
}

int main(void) {
  try_flags("clone user", CLONE_NEWUSER);
  try_flags("clone user and mount", CLONE_NEWUSER | CLONE_NEWNS);
  return conclude();
}
