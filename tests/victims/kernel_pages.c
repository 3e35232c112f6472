// Reads which physical pages are used how often, and the kernel's own allocations.
// victim: id=ESC-06
#include "victim.h"

int main(void) {
  attempt_open("/proc/kpagecount", O_RDONLY);
  attempt_open("/proc/kpageflags", O_RDONLY);
  attempt_open("/proc/kpagecgroup", O_RDONLY);
  attempt_open("/proc/vmallocinfo", O_RDONLY);
  attempt_open("/proc/slabinfo", O_RDONLY);
  return conclude();
}
