// Lists the keys of the kernel and who has how many.
// victim: id=ESC-06
#include "victim.h"

int main(void) {
  attempt_open("/proc/keys", O_RDONLY);
  attempt_open("/proc/key-users", O_RDONLY);
  return conclude();
}
