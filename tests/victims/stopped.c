// Stops itself, so that a polite signal would wait for ever.
// victim: id=RES-17 sandbox=fresh verdict=wall_time timeout_ms=1500
#include <signal.h>

#include "victim.h"

int main(void) {
  if (!may_harm()) return not_tried("would leave a stopped process behind");
  while (true) raise(SIGSTOP);
}
