// Takes a descriptor out of process 1, and out of its own child.
// victim: id=ESC-18
#include <signal.h>

#include "victim.h"

int main(void) {
  int init = (int)syscall(SYS_pidfd_open, 1, 0);
  if (init >= 0) attempt("pidfd_getfd of process 1", syscall(SYS_pidfd_getfd, init, 0, 0));
  pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  int own = (int)syscall(SYS_pidfd_open, child, 0);
  if (own >= 0) attempt("pidfd_getfd of a child", syscall(SYS_pidfd_getfd, own, 0, 0));
  kill(child, SIGKILL);
  wait_for(child);
  return conclude();
}
