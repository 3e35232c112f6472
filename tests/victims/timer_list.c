// Reads all timers of the host, with the names of the programs that set them.
// victim: id=ESC-06
#include "victim.h"

int main(void) {
  attempt_open("/proc/timer_list", O_RDONLY);
  attempt_open("/proc/timer_stats", O_RDONLY);
  attempt_open("/proc/sched_debug", O_RDONLY);
  attempt_open("/proc/latency_stats", O_RDONLY);
  return conclude();
}
