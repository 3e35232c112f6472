// A new file system by mount(2).
// victim: id=ESC-12
#include <sys/mount.h>

#include "victim.h"

int main(void) {
  if (!may_harm()) return not_tried("would change the mounts of the host");
  attempt("mount tmpfs", mount("none", "/mnt", "tmpfs", 0, NULL));
  attempt("mount proc", mount("none", "/mnt", "proc", 0, NULL));
  return conclude();
}
