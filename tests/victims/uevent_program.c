// Writes the program that the kernel runs for a device event.
// victim: id=ESC-02
#include "victim.h"

int main(void) {
  attempt_rewrite("/sys/kernel/uevent_helper");
  attempt_rewrite("/proc/sys/kernel/hotplug");
  return conclude();
}
