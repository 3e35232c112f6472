// Takes nosuid, nodev and read-only off the root, and makes its mounts shared again.
// victim: id=ESC-12
#include <sys/mount.h>

#include "victim.h"

int main(void) {
  if (!may_harm()) return not_tried("would change the mounts of the host");
  attempt("remount /dev", mount("none", "/dev", NULL, MS_REMOUNT | MS_BIND, NULL));
  attempt("make shared", mount("none", "/", NULL, MS_SHARED | MS_REC, NULL));
  return conclude();
}
