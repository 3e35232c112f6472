// Reaches debugfs and tracefs, where they are mounted and by mounting them.
// victim: id=ESC-06
#include <sys/mount.h>

#include "victim.h"

int main(void) {
  if (!may_harm()) return not_tried("would change the mounts of the host");
  attempt_open("/sys/kernel/debug/sched", O_RDONLY);
  attempt_open("/sys/kernel/tracing/trace", O_RDONLY);
  attempt("mount debugfs", mount("none", "/mnt", "debugfs", 0, NULL));
  attempt("mount tracefs", mount("none", "/mnt", "tracefs", 0, NULL));
  return conclude();
}
