// Opens the hardware clock.
// victim: id=ESC-27
#include "victim.h"

int main(void) {
  attempt_open("/dev/rtc", O_RDWR);
  attempt_open("/dev/rtc0", O_RDWR);
  return conclude();
}
