// Changes the pace of the host's clock, to what it is.
// victim: id=ESC-27
#include <sys/timex.h>
#include <time.h>

#include "victim.h"

int main(void) {
  struct timex state = {0};
  if (adjtimex(&state) < 0) note("adjtimex to read: %s", strerror(errno));
  struct timex change = {.modes = ADJ_TICK, .tick = state.tick != 0 ? state.tick : 10000};
  attempt("adjtimex", adjtimex(&change));
  change.modes = ADJ_TICK;
  attempt("clock_adjtime", syscall(SYS_clock_adjtime, CLOCK_REALTIME, &change));
  return conclude();
}
