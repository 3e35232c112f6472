// Reads the memory of another process: of its own child, whose addresses it knows.
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
  char copy[16];
  struct iovec local = {copy, sizeof copy}, remote = {secret, sizeof secret};
  attempt("process_vm_readv", process_vm_readv(child, &local, 1, &remote, 1, 0));
  kill(child, SIGKILL);
  wait_for(child);
  return conclude();
}
