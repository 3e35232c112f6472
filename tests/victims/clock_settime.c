// Sets the clock of the host by its number, to what it is.
// victim: id=ESC-27
#include <time.h>

#include "victim.h"

int main(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  attempt("clock_settime", syscall(SYS_clock_settime, CLOCK_REALTIME, &now));
  return conclude();
}
