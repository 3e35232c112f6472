// Root inside becomes a user and executes itself: no capability may be left, and no way back.
// victim: id=ESC-21 user=root
#include "victim.h"

int main(int count, char** values) {
  if (count > 1) {
    bool empty = file_contains("/proc/self/status", "CapPrm:\t0000000000000000") &&
                 file_contains("/proc/self/status", "CapEff:\t0000000000000000");
    return empty && setuid(0) != 0 ? kHeld : kBrokeThrough;
  }
  pid_t child = fork();
  if (child == 0) {
    if (setresgid(1000, 1000, 1000) != 0 || setresuid(1000, 1000, 1000) != 0) _exit(kNotTried);
    execl("/proc/self/exe", values[0], "capability_after_setuid", "audit", NULL);
    _exit(kNotTried);
  }
  int status = wait_for(child);
  if (status == kNotTried) return not_tried("root may not become a user here");
  if (status != kHeld) broke("something was left after setuid");
  return conclude();
}
