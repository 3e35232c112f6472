// Switches the filter and no_new_privs off, and checks that a program has them at all.
// victim: id=ESC-31
#include <sys/prctl.h>

#include "victim.h"

int main(void) {
  if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) broke("no_new_privs is not set");
  if (prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0) broke("no_new_privs was taken off");
  if (!file_contains("/proc/self/status", "Seccomp:\t2")) broke("there is no filter");
  if (prctl(PR_SET_SECCOMP, 0, 0, 0, 0) == 0) broke("the filter was taken off");
  return conclude();
}
