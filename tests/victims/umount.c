// Unmounts what covers the files of /proc, and /proc itself.
// victim: id=ESC-12
#include <sys/mount.h>

#include "victim.h"

int main(void) {
  if (!may_harm()) return not_tried("would change the mounts of the host");
  attempt("umount /proc", umount2("/proc", MNT_DETACH));
  attempt("umount /", umount2("/", MNT_DETACH));
  return conclude();
}
