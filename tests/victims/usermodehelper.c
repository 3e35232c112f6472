// Widens the capabilities of the programs that the kernel itself starts.
// victim: id=ESC-02
#include "victim.h"

int main(void) {
  attempt_rewrite("/proc/sys/kernel/usermodehelper/bset");
  attempt_rewrite("/proc/sys/kernel/usermodehelper/inheritable");
  return conclude();
}
