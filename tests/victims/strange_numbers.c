// Call numbers that no table has: -1, far too large ones, and a number with bits above the 32nd.
// victim: id=ESC-30
#include "victim.h"

static long minus_one(void) { return syscall(-1); }
static long beyond(void) { return syscall(100000); }
static long largest(void) { return syscall(0x3fffffff); }

int main(void) {
  attempt_in_child("-1", minus_one);
  attempt_in_child("100000", beyond);
  attempt_in_child("0x3fffffff", largest);
  return conclude();
}
