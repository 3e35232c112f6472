// A new user namespace, in which it would hold every capability.
// victim: id=ESC-17
#include <sched.h>

#include "victim.h"

static long call(void) { return unshare(CLONE_NEWUSER); }

int main(void) {
  attempt_in_child("unshare user", call);
  return conclude();
}
