// Ends at once but leaves a child that holds its output open: the call must not wait for that.
// victim: id=RES-17 sandbox=fresh timeout_ms=10000
#include "victim.h"

int main(void) {
  if (!may_harm()) return not_tried("would leave a process behind");
  if (fork() == 0) {
    setsid();
    sleep(60);
    _exit(0);
  }
  return kHeld;
}
