// Registers an interpreter for other people's files, with the credentials of the file.
// victim: id=ESC-04
#include <sys/mount.h>

#include "victim.h"

int main(void) {
  if (!may_harm()) return not_tried("would change the mounts of the host");
  attempt_open("/proc/sys/fs/binfmt_misc/register", O_WRONLY);
  attempt("mount binfmt_misc", mount("none", "/mnt", "binfmt_misc", 0, NULL));
  return conclude();
}
