// Makes a read-only mount writable.
// victim: id=ESC-12
#include <linux/mount.h>

#include "victim.h"

int main(void) {
  if (!may_harm()) return not_tried("would change the mounts of the host");
  struct mount_attr attributes = {.attr_clr = MOUNT_ATTR_NODEV};
  attempt("mount_setattr",
          syscall(SYS_mount_setattr, AT_FDCWD, "/proc", 0, &attributes, sizeof attributes));
  return conclude();
}
