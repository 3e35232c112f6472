// Reads and writes the kernel's log, which names host devices and addresses.
// victim: id=ESC-06
#include "victim.h"

int main(void) {
  attempt_open("/proc/kmsg", O_RDONLY);
  attempt_open("/dev/kmsg", O_RDONLY);
  attempt_open("/dev/kmsg", O_WRONLY);
  return conclude();
}
