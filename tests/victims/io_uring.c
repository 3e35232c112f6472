// Makes a ring by which calls go past the filter.
// victim: id=ESC-22
#include "victim.h"

int main(void) {
  uint32_t parameters[30] = {0};
  attempt("io_uring_setup", syscall(SYS_io_uring_setup, 8, parameters));
  return conclude();
}
