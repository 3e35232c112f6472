// Changes the root of the whole mount namespace.
// victim: id=ESC-12
#include "victim.h"

int main(void) {
  if (!may_harm()) return not_tried("would change the mounts of the host");
  if (chdir("/") != 0) return not_tried("chdir: %s", strerror(errno));
  attempt("pivot_root", syscall(SYS_pivot_root, "/dev/shm", "/dev/shm"));
  return conclude();
}
