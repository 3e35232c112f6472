// Writes the kernel's core_pattern, by which a crash runs a program on the host.
// victim: id=ESC-01
#include "victim.h"

int main(void) {
  attempt_rewrite("/proc/sys/kernel/core_pattern");
  return conclude();
}
