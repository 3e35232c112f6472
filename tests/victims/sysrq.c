// Opens the magic system request file for writing; its harmless help key would be next.
// victim: id=ESC-03
#include "victim.h"

int main(void) {
  attempt_open("/proc/sysrq-trigger", O_WRONLY);
  attempt_rewrite("/proc/sys/kernel/sysrq");
  return conclude();
}
