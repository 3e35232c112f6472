// Opens a performance counter of its own process.
// victim: id=ESC-22
#include <linux/perf_event.h>

#include "victim.h"

int main(void) {
  struct perf_event_attr attributes = {.type = PERF_TYPE_SOFTWARE, .size = sizeof attributes};
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.exclude_kernel = 1;
  attempt("perf_event_open", syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0));
  return conclude();
}
