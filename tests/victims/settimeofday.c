// Sets the clock of the host, to what it is.
// victim: id=ESC-27
#include <sys/time.h>

#include "victim.h"

int main(void) {
  struct timeval now;
  gettimeofday(&now, NULL);
  attempt("settimeofday", syscall(SYS_settimeofday, &now, NULL));
  return conclude();
}
