// New namespaces of the other kinds.
// victim: id=ESC-17
#include <sched.h>

#include "victim.h"

static long mounts(void) { return unshare(CLONE_NEWNS); }
static long network(void) { return unshare(CLONE_NEWNET); }
static long processes(void) { return unshare(CLONE_NEWPID); }
static long names(void) { return unshare(CLONE_NEWUTS); }
static long ipc(void) { return unshare(CLONE_NEWIPC); }
static long groups(void) { return unshare(CLONE_NEWCGROUP); }

int main(void) {
  attempt_in_child("unshare mount", mounts);
  attempt_in_child("unshare network", network);
  attempt_in_child("unshare pid", processes);
  attempt_in_child("unshare uts", names);
  attempt_in_child("unshare ipc", ipc);
  attempt_in_child("unshare cgroup", groups);
  return conclude();
}
