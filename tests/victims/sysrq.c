// Opens the magic system request file for writing; its harmless help key would be next.
// victim: id=ESC-03
// not_behind=gvisor:it_is_a_file_of_the_sentry's_that_does_nothing
#include "victim.h"

int main(void) {
  attempt_open("/proc/sysrq-trigger", O_WRONLY);
  attempt_rewrite("/proc/sys/kernel/sysrq");
  return conclude();
}
