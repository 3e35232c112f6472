// A bind of one directory over another.
// victim: id=ESC-12
#include <sys/mount.h>

#include "victim.h"

int main(void) {
  if (!may_harm()) return not_tried("would change the mounts of the host");
  attempt("bind", mount("/tmp", "/mnt", NULL, MS_BIND, NULL));
  attempt("recursive bind", mount("/", "/mnt", NULL, MS_BIND | MS_REC, NULL));
  return conclude();
}
