// Opens physical memory and the I/O ports.
// victim: id=ESC-06
#include "victim.h"

int main(void) {
  attempt_open("/dev/mem", O_RDONLY);
  attempt_open("/dev/kmem", O_RDONLY);
  attempt_open("/dev/port", O_RDWR);
  return conclude();
}
