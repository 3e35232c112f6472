// Traces process 1, and its own child.
// victim: id=ESC-19
#include <signal.h>
#include <sys/ptrace.h>

#include "victim.h"

int main(void) {
  attempt("PTRACE_SEIZE of process 1", ptrace(PTRACE_SEIZE, 1, 0, 0));
  pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  attempt("PTRACE_SEIZE of a child", ptrace(PTRACE_SEIZE, child, 0, 0));
  kill(child, SIGKILL);
  wait_for(child);
  return conclude();
}
