// Handles its own page faults, which holds the kernel in the middle of a copy.
// victim: id=ESC-22
#include <linux/userfaultfd.h>

#include "victim.h"

int main(void) {
  attempt("userfaultfd", syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY));
  attempt_open("/dev/userfaultfd", O_RDWR);
  return conclude();
}
