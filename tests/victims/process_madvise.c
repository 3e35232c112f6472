// Advises the kernel about the memory of another process: of its own child.
// victim: id=ESC-19
#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "victim.h"

int main(void) {
  char* page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
  struct iovec range = {page, 4096};
  attempt("process_madvise", syscall(SYS_process_madvise, pidfd, &range, 1, MADV_COLD, 0));
  kill(child, SIGKILL);
  wait_for(child);
  return conclude();
}
