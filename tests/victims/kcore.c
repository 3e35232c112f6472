// Reads the kernel's memory as a core file.
// victim: id=ESC-06
#include "victim.h"

int main(void) {
  attempt_open("/proc/kcore", O_RDONLY);
  return conclude();
}
