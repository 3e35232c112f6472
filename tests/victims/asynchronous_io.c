// Takes asynchronous I/O until there is no more: the host has one number of it for everybody.
// victim: id=RES-14
// not_behind=gvisor:its_queues_are_the_sentry's_own
#include "victim.h"

int main(void) {
  unsigned long context = 0;
  long result = syscall(SYS_io_setup, 128, &context);
  attempt("io_setup", result);
  if (result == 0) syscall(SYS_io_destroy, context);
  return conclude();
}
