// A call by the numbers of the x32 ABI (bit 30).
// victim: id=ESC-30
#include "victim.h"

static long call(void) { return syscall(0x40000000 | SYS_getpid); }

int main(void) {
  attempt_in_child("x32 getpid", call);
  return conclude();
}
