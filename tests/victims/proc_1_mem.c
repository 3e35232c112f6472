// Opens the memory, the maps and the registers of process 1 through /proc.
// victim: id=ESC-19
// not_behind=gvisor:its_kernel_shows_the_agent's_/proc_to_all_in_the_sandbox
#include "victim.h"

int main(void) {
  attempt_open("/proc/1/mem", O_RDONLY);
  attempt_open("/proc/1/mem", O_RDWR);
  attempt_open("/proc/1/maps", O_RDONLY);
  attempt_open("/proc/1/syscall", O_RDONLY);
  attempt_open("/proc/1/auxv", O_RDONLY);
  return conclude();
}
