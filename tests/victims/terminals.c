// Takes every terminal it can get and keeps them: the host must get its own.
// victim: id=RES-15 sandbox=fresh
#include "victim.h"

int main(void) {
  if (!may_harm()) return not_tried("would take every terminal of the host");
  int taken = 0;
  while (taken < 5000 && open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC) >= 0) ++taken;
  note("%d terminals, then %s", taken, strerror(errno));
  if (fork() == 0) {
    close(1);
    close(2);
    sleep(60);
    _exit(0);
  }
  return conclude();
}
