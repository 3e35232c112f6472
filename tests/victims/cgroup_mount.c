// Mounts the control groups, of version 1 with its release_agent and of version 2.
// victim: id=ESC-05
#include <sys/mount.h>

#include "victim.h"

int main(void) {
  if (!may_harm()) return not_tried("would change the mounts of the host");
  attempt("mount cgroup", mount("none", "/mnt", "cgroup", 0, "memory"));
  attempt("mount cgroup2", mount("none", "/mnt", "cgroup2", 0, NULL));
  return conclude();
}
