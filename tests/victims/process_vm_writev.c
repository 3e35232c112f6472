// Writes the memory of another process: of its own child, whose addresses it knows.
// victim: id=ESC-19
#include <signal.h>
#include <sys/uio.h>

#include "victim.h"

static char secret[16] = "memory";

int main(void) {
  pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  char other[16] = "changed";
  struct iovec local = {other, sizeof other}, remote = {secret, sizeof secret};
  attempt("process_vm_writev", process_vm_writev(child, &local, 1, &remote, 1, 0));
  kill(child, SIGKILL);
  wait_for(child);
  return conclude();
}
