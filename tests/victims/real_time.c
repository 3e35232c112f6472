// Takes the processor before everybody else.
// victim: id=RES-05
// not_behind=gvisor:its_kernel_has_no_real-time_scheduling
#include <sched.h>

#include "victim.h"

int main(void) {
  struct sched_param highest = {.sched_priority = 99};
  attempt("SCHED_FIFO", sched_setscheduler(0, SCHED_FIFO, &highest));
  attempt("SCHED_RR", sched_setscheduler(0, SCHED_RR, &highest));
  return conclude();
}
