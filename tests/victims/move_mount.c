// Moves a mount to another place.
// victim: id=ESC-12
#include "victim.h"

int main(void) {
  if (!may_harm()) return not_tried("would change the mounts of the host");
  attempt("move_mount", syscall(SYS_move_mount, AT_FDCWD, "/proc", AT_FDCWD, "/mnt", 0));
  return conclude();
}
