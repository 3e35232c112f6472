// The same forbidden call with rubbish in the upper half of its flags and of its number.
// victim: id=ESC-31
#include <sched.h>

#include "victim.h"

static long flags(void) {
  long result = syscall(SYS_unshare, 0xdead000000000000ul | CLONE_NEWUSER);
  // A kernel that looks at all 64 bits knows no such flags.
  if (result < 0 && errno == EINVAL) errno = EPERM;
  return result;
}
static long number(void) {
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(0x0000000100000000ul | SYS_unshare), "D"((long)CLONE_NEWUSER)
                   : "rcx", "r11", "memory");
  if (result >= 0) return result;
  errno = (int)-result;
  return -1;
}

int main(void) {
  attempt_in_child("unshare with high flags", flags);
  attempt_in_child("unshare with a high number", number);
  return conclude();
}
