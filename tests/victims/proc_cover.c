// Covers /proc by a tmpfs and by a bind, so that later writes of a runtime land in a fake.
// victim: id=ESC-07
#include <sys/mount.h>

#include "victim.h"

int main(void) {
  if (!may_harm()) return not_tried("would change the mounts of the host");
  attempt("tmpfs over /proc/self", mount("none", "/proc/self/fdinfo", "tmpfs", 0, NULL));
  attempt("bind over /proc", mount("/tmp", "/proc/self/fdinfo", NULL, MS_BIND, NULL));
  return conclude();
}
