// Writes the program that the kernel runs to load a module.
// victim: id=ESC-02
#include "victim.h"

int main(void) {
  attempt_rewrite("/proc/sys/kernel/modprobe");
  return conclude();
}
