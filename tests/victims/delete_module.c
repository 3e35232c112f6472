// Removes a module of the kernel.
// victim: id=ESC-25
#include "victim.h"

int main(void) {
  long result = syscall(SYS_delete_module, "atoll_no_such_module", O_NONBLOCK);
  // The kernel looks for the name only after it has checked the right.
  attempt("delete_module", result < 0 && errno == ENOENT ? 0 : result);
  return conclude();
}
