// Gives itself a higher priority than others, for the processor and for the disk.
// victim: id=RES-05
// not_behind=gvisor:its_priorities_are_the_sentry's_own
#include <sys/resource.h>

#include "victim.h"

int main(void) {
  attempt("nice -20", setpriority(PRIO_PROCESS, 0, -20));
  attempt("real-time disk priority", syscall(SYS_ioprio_set, 1, 0, 1 << 13));
  return conclude();
}
