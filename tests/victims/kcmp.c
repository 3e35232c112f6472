// Compares kernel objects of two processes, which reveals the order of their addresses.
// victim: id=ESC-19
#include "victim.h"

int main(void) {
  attempt("kcmp", syscall(SYS_kcmp, getpid(), getpid(), 1, 0, 0));
  return conclude();
}
