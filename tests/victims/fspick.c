// Takes a mounted file system to change its options.
// victim: id=ESC-12
#include "victim.h"

int main(void) {
  attempt("fspick", syscall(SYS_fspick, AT_FDCWD, "/dev/shm", 1));
  return conclude();
}
